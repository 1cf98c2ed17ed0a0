#include "gradsync/backends/gloo/run_on_gloo.hpp"

#include "gradsync/core/error.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using gradsync::test::contains;

// That it runs a job is what the tests of examples/own_model show.
TEST_CASE("run_on_gloo refuses a process that no launcher started, and runs nothing") {
  bool ran = false;
  try {
    run_on_gloo([&](ProcessGroup&, Clock&) { ran = true; });
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    CHECK_THAT(error.what(), contains("gradsync launch"));
  }
  CHECK_FALSE(ran);
}
