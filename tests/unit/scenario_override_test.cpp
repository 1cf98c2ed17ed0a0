// Overrides from the command line, files of a scenario, and where errors point.
#include "gradsync/testbed/scenario/scenario.hpp"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync;
using gradsync::test::contains;
using gradsync::test::mistake_in;
using gradsync::test::parse_test_scenario;
using gradsync::test::write_text;

TEST_CASE("scenario: the first mistake is the first in the file") {
  CHECK(mistake_in(R"({"train": {"epochs": 0}, "ranks": 0})").pointer == "/train/epochs");
  CHECK(mistake_in(R"({"ranks": 0, "train": {"epochs": 0}})").pointer == "/ranks");
  CHECK(mistake_in(R"({"optimizer": {"betas": 1, "kind": "sgd"}})").pointer == "/optimizer/betas");
}

TEST_CASE("scenario: a long value is shortened in the error, at a character's border") {
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\u00fc";
  const std::string found = mistake_in(R"({"ranks": ")" + umlauts + "\"}").found;
  CHECK(found.size() < 70);
  CHECK(found.substr(found.size() - 3) == "...");
  CHECK_NOTHROW(nlohmann::json(found).dump());  // throws on broken UTF-8
}

TEST_CASE("scenario: overrides set values by their path, the last one wins") {
  const Scenario s =
      parse_test_scenario(R"({"ranks": 2, "train": {"batch_size": 32, "epochs": 3}})",
                          {{"ranks", "8", ""},
                           {"train.batch_size", "16", ""},
                           {"train.batch_size", "8", ""},
                           {"timeout", "5s", ""},
                           {"description", "two words", ""},
                           {"train.clip_grad_norm", "null", ""},
                           {"cluster.intra_node.bandwidth", "\"1GBps\"", ""},
                           {"sampler.shard_sizes", "[1,1,1,1,1,1,1,1]", ""},
                           {"ddp", R"({"bucket_cap_mb": 1})", ""}});
  CHECK(s.ranks == 8);
  CHECK(s.train.batch_size == 8);
  CHECK(s.train.epochs == 3);
  CHECK(s.timeout == Seconds{5});
  CHECK(s.description == "two words");
  CHECK_FALSE(s.train.clip_grad_norm.has_value());
  CHECK(s.cluster.intra_node.bandwidth.value == 1e9);
  CHECK(s.sampler.shard_sizes.size() == 8);
  CHECK(s.ddp.bucket_cap_mb == 1);
}

TEST_CASE("scenario: a mistake in an override names the option") {
  const auto unknown = mistake_in("{}", {{"train.bach_size", "16", ""}});
  CHECK(unknown.file == "--set train.bach_size=16");
  CHECK(unknown.pointer == "/train/bach_size");
  CHECK(unknown.hint == "did you mean \"batch_size\"?");

  const auto zero = mistake_in("{}", {{"ranks", "0", "--ranks 0"}});
  CHECK(zero.file == "--ranks 0");
  CHECK(zero.pointer == "/ranks");

  const auto inside = mistake_in("{}", {{"sampler.shard_sizes", "[1,\"x\"]", ""}});
  CHECK(inside.file == "--set sampler.shard_sizes=[1,\"x\"]");
  CHECK(inside.pointer == "/sampler/shard_sizes/1");

  // The file's own mistakes stay the file's.
  const auto own = mistake_in(R"({"rankss": 1})", {{"ranks", "4", ""}});
  CHECK(own.file == "test.json");
}

TEST_CASE("scenario: a conflict between file and option names both") {
  const auto conflict =
      mistake_in(R"({"sampler": {"shard_sizes": [5, 5]}})", {{"ranks", "3", "--ranks 3"}});
  CHECK(conflict.file == "test.json");
  CHECK(conflict.pointer == "/sampler/shard_sizes");
  CHECK(conflict.expected == "a size for each rank (/ranks is 3 by --ranks 3)");

  const auto kind =
      mistake_in(R"({"optimizer": {"betas": [0.9, 0.99]}})", {{"optimizer.kind", "sgd", ""}});
  CHECK(kind.pointer == "/optimizer/betas");
  CHECK(kind.hint ==
        "it goes with kind \"adamw\", and /optimizer/kind is \"sgd\" by --set optimizer.kind=sgd");
}

TEST_CASE("scenario: an override that cannot be followed is refused") {
  for (const char* path : {"", ".", "train.", ".ranks", "train..epochs"}) {
    CAPTURE(path);
    const auto mistake = mistake_in("{}", {{path, "1", ""}});
    CHECK(mistake.file == std::string("--set ") + path + "=1");
    CHECK(mistake.expected == "a path such as train.batch_size");
  }
  const auto through = mistake_in(R"({"ranks": 2})", {{"ranks.x", "1", ""}});
  CHECK(through.pointer == "/ranks");
  CHECK(through.found == "2");
}

TEST_CASE("scenario: paths are relative to the scenario's folder, and absolute once read") {
  const test::TemporaryDirectory folder;
  std::filesystem::create_directories(folder.path() / "scenarios/models");
  write_text(folder.path() / "scenarios/models/small.json", "{}");
  const std::string file = folder.path() / "scenarios/job.json";
  write_text(file, R"({"model": {"kind": "replay", "profile": "models/small.json"},
                  "data": {"kind": "indices"}})");
  const Scenario s = load_scenario(file);
  CHECK(s.name == "job");
  CHECK(s.file == file);
  CHECK(s.model.replay.profile == folder.path() / "scenarios/models/small.json");

  // What is written can be read from any folder.
  write_text(folder.path() / "resolved.json", to_json(s).dump());
  Scenario again = load_scenario(folder.path() / "resolved.json");
  again.file = s.file;
  CHECK(again == s);
}

TEST_CASE("scenario: a file that cannot be read is an error about the file") {
  const test::TemporaryDirectory folder;
  CHECK_THROWS_WITH(load_scenario(folder.path() / "none.json"), contains("found no such file"));
  CHECK_THROWS_WITH(load_scenario(folder.path()), contains("found a folder"));
  CHECK_THROWS_AS(load_scenario(folder.path()), ConfigError);
}
