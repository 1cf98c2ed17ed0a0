// One engine, two backends: the same scenario on real Gloo and in the simulator ends with the same
// parameters, to the last bit, by the same collectives.
#include <filesystem>

#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;
namespace fs = std::filesystem;

namespace {

/// The handbook's model at full size, four steps of it.
std::string hash_of(const std::string& backend, int ranks, const fs::path& out) {
  const CommandResult run =
      run_command({"run", shipped("quickstart.json"), "--backend", backend, "--ranks",
                   std::to_string(ranks), "--out", out, "--json", "--set", "train.max_steps=4"});
  INFO(run.err);
  REQUIRE(run.exit_status == 0);
  const auto result = run.json();
  REQUIRE(result.at("steps_completed") == 4);
  return result.at("parameter_hash");
}

}  // namespace

TEST_CASE("gloo and sim end with the same parameters, for every number of ranks") {
  const int ranks = GENERATE(1, 2, 3, 4, 8);
  INFO(ranks << " ranks");
  const TemporaryDirectory directory;
  const std::string gloo = hash_of("gloo", ranks, directory.path() / "gloo");
  const std::string sim = hash_of("sim", ranks, directory.path() / "sim");
  CHECK(gloo == sim);

  const CommandResult compared =
      run_command({"compare", directory.path() / "gloo", directory.path() / "sim"});
  INFO(compared.out << compared.err);
  CHECK(compared.exit_status == 0);
  CHECK_THAT(compared.out, contains("equal"));
}

TEST_CASE("a run repeated three times ends with the same parameters each time") {
  const std::string backend = GENERATE("gloo", "sim");
  INFO(backend);
  const TemporaryDirectory directory;
  const std::string first = hash_of(backend, 3, directory.path() / "1");
  CHECK(hash_of(backend, 3, directory.path() / "2") == first);
  CHECK(hash_of(backend, 3, directory.path() / "3") == first);
}

TEST_CASE("compare finds runs that differ") {
  const TemporaryDirectory directory;
  const auto run = [&](const std::string& out, const std::string& setting) {
    REQUIRE(run_command(run_arguments(shipped("quickstart.json"), small_model(),
                                      {"--backend", "sim", "--out", directory.path() / out, "--set",
                                       "train.max_steps=3", "--set", setting}))
                .exit_status == 0);
  };
  run("a", "seed=1");
  run("b", "seed=2");
  run("c", "ddp.bucket_cap_mb=0.01");
  const auto compare = [&](const std::string& other) {
    return run_command({"compare", directory.path() / "a", directory.path() / other});
  };
  CHECK(compare("a").exit_status == 0);
  CHECK(compare("b").exit_status == 1);
  CHECK_THAT(compare("b").out, contains("first difference: "));
  CHECK(compare("c").exit_status == 1);
}

TEST_CASE(
    "a model with batch norm broadcasts its buffers on both backends, and ends with equal hashes") {
  const TemporaryDirectory directory;
  const auto run = [&](const std::string& backend, const std::string& buffers) {
    const CommandResult result = run_command(run_arguments(
        shipped("quickstart.json"), small_model(),
        {"--backend", backend, "--ranks", "2", "--out", directory.path() / (backend + buffers),
         "--json", "--set", "model.norm=batch_norm", "--set", "train.max_steps=3", "--set",
         "ddp.broadcast_buffers=" + buffers}));
    INFO(result.err);
    REQUIRE(result.exit_status == 0);
    return result.json();
  };
  CHECK(run("gloo", "true").at("parameter_hash") == run("sim", "true").at("parameter_hash"));
  run("sim", "false");

  // Without the broadcast only the buffers differ: the gradients are reduced all the same.
  const auto compare = [&](const std::string& a, const std::string& b) {
    return run_command({"compare", directory.path() / a, directory.path() / b});
  };
  CHECK(compare("glootrue", "simtrue").exit_status == 0);
  const CommandResult without = compare("simtrue", "simfalse");
  CHECK(without.exit_status == 1);
  CHECK_THAT(without.out, contains("first difference: rank 0, collective 2: broadcast"));
}

TEST_CASE("gloo and sim end with the same parameters in every dtype") {
  const std::string dtype = GENERATE("float64", "float16", "bfloat16");
  INFO(dtype);
  const TemporaryDirectory directory;
  const auto hash = [&](const std::string& backend) {
    const CommandResult run = run_command(
        run_arguments(shipped("quickstart.json"), small_model(),
                      {"--backend", backend, "--ranks", "3", "--out", directory.path() / backend,
                       "--json", "--set", "train.max_steps=3", "--set", "model.dtype=" + dtype}));
    INFO(run.err);
    REQUIRE(run.exit_status == 0);
    return run.json().at("parameter_hash");
  };
  CHECK(hash("gloo") == hash("sim"));
}
