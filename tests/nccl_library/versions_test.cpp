// Which libraries of NCCL are taken, and what is said of those that are not. No GPU is needed: no
// function but ncclGetVersion is called.
#include <cstdlib>
#include <string>

#include "gradsync/backends/nccl/runtime/nccl_library.hpp"
#include "gradsync/core/error.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

/// Opens this file as NCCL, and forgets the choice again.
class ChosenLibrary {
 public:
  explicit ChosenLibrary(const std::string& path) {
    ::setenv("GRADSYNC_NCCL_LIBRARY", path.c_str(), 1);
  }
  ~ChosenLibrary() { ::unsetenv("GRADSYNC_NCCL_LIBRARY"); }
};

std::string refusal() {
  try {
    open_nccl();
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kBackendUnavailable);
    return e.what();
  }
  return "it was taken";
}

}  // namespace

TEST_CASE("NCCL 2.18 is taken, without what only later versions have") {
  const ChosenLibrary chosen(GRADSYNC_NCCL_2_18);
  const auto nccl = open_nccl();
  CHECK(nccl->version() == 21800);
  CHECK_FALSE(nccl->can_split());
  CHECK_FALSE(nccl->can_register());
}

TEST_CASE("a library that is older than 2.18 is refused, with its version") {
  const ChosenLibrary chosen(GRADSYNC_NCCL_2_17);
  CHECK_THAT(refusal(), contains("NCCL 2.17.0 is too old: 2.18"));
}

TEST_CASE("a library without a function that is needed is refused, with both names") {
  const ChosenLibrary chosen(GRADSYNC_NCCL_2_13);
  CHECK_THAT(refusal(), contains(GRADSYNC_NCCL_2_13) && contains("has no ncclCommInitRankConfig") &&
                            contains("too old"));
}

TEST_CASE("a library that is not there is refused, with the loader's words") {
  const ChosenLibrary chosen("/nowhere/libnccl.so.2");
  CHECK_THAT(refusal(), contains("NCCL cannot be opened") && contains("/nowhere/libnccl.so.2"));
}
