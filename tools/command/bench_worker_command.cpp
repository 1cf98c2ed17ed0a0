#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "tools/command/allreduce_run.hpp"
#include "tools/command/backend_registry.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {
namespace {

struct BenchWorkerOptions {
  std::string scenario;
  std::string directory;
  std::string bench;
  bool progress = false;
};

/// One rank of `gradsync bench`: rank 0 prints a line of JSON for each size when asked to.
int measure(const BenchWorkerOptions& options) {
  const Scenario scenario = load_scenario(options.scenario);
  const auto bench =
      allreduce_bench_from_json(nlohmann::ordered_json::parse(read_file(options.bench)));
  const auto environment = resolve_rank_environment({});
  if (!environment) {
    throw Error(ErrorCode::kUsage, "bench-worker is started by `gradsync bench`, which sets RANK");
  }
  RankRequest request;
  request.environment = *environment;
  request.directory = options.directory;
  request.body = [&](const RankWorld& world, RankReport& report) {
    bench_on_rank(bench, scenario, world, report, [&](const BenchRow& row) {
      if (options.progress) std::cout << to_json(row, report.world_size).dump() << std::endl;
    });
  };
  return require_backend(scenario.backend).run_rank(scenario, request).exit_status;
}

}  // namespace

void add_bench_worker_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("bench-worker", "One rank (used by bench)");
  command->group("");  // not listed
  auto options = std::make_shared<BenchWorkerOptions>();
  command->add_option("--scenario", options->scenario, "Resolved scenario")->required();
  command->add_option("--directory", options->directory, "Where to leave the report")->required();
  command->add_option("--bench", options->bench, "What to measure")->required();
  command->add_flag("--progress", options->progress, "Rank 0 prints its rows");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return measure(*options); }; });
}

}  // namespace gradsync
