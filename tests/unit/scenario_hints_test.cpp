#include "gradsync/testbed/scenario/scenario_hints.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace gradsync::scenario_table;

TEST_CASE("scenario hints: the nearest candidate by edits") {
  const std::vector<std::string> keys{"batch_size", "epochs", "max_steps", "lr", "ranks"};
  CHECK(nearest("batch_siez", keys) == "batch_size");  // a swap is one edit
  CHECK(nearest("batchsize", keys) == "batch_size");   // underscores do not count
  CHECK(nearest("Batch-Size", keys) == "batch_size");  // nor do case and dashes
  CHECK(nearest("max_step", keys) == "max_steps");     // delete
  CHECK(nearest("epoochs", keys) == "epochs");         // insert
  CHECK(nearest("rinks", keys) == "ranks");            // replace
  CHECK(nearest("lrr", keys) == "lr");                 // short words allow one edit
}

TEST_CASE("scenario hints: nothing is better than a guess") {
  const std::vector<std::string> keys{"batch_size", "epochs", "lr"};
  CHECK(nearest("topology", keys).empty());
  CHECK(nearest("ab", keys).empty());
  CHECK(nearest("x", keys).empty());
  CHECK(nearest("", keys).empty());
  CHECK(nearest("epochs", {}).empty());
  CHECK(did_you_mean("topology", keys).empty());
  CHECK(did_you_mean("epoch", keys) == "did you mean \"epochs\"?");
}

TEST_CASE("scenario hints: lists read as sentences") {
  CHECK(enumerate({}, "and").empty());
  CHECK(enumerate({"a"}, "and") == "a");
  CHECK(enumerate({"a", "b"}, "or") == "a or b");
  CHECK(enumerate({"a", "b", "c"}, "and") == "a, b and c");
}
