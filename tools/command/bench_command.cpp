#include <filesystem>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/allreduce_bench.hpp"
#include "tools/command/allreduce_run.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {
namespace {

struct BenchOptions {
  AllreduceRunOptions run;
  std::string min_bytes = "8";
  std::string max_bytes = "32M";
  bool json = false;
};

int bench_allreduce(const BenchOptions& options) {
  AllreduceRunOptions run = options.run;
  run.bench.min_bytes = parse_bench_size(options.min_bytes);
  run.bench.max_bytes = parse_bench_size(options.max_bytes);
  const PreparedAllreduceRun prepared = prepare_allreduce_run(run);
  const int ranks = static_cast<int>(prepared.scenario.ranks);
  if (!options.json) {
    std::cout << bench_heading(prepared.program, ranks) << std::flush;
  }
  const BenchTable table = run_allreduce(prepared, [&](const BenchRow& row) {
    if (!options.json) std::cout << bench_line(row, ranks) << std::flush;
  });
  std::cout << (options.json ? dump_json(to_json(table), 2) + "\n" : bench_footer(table));
  return wrong_elements(table) == 0 ? 0 : 1;
}

}  // namespace

void add_bench_command(CLI::App& app, Invocation& invocation) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure collectives, on a real backend or simulated");
  bench->footer("");
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand(
      "allreduce",
      "Measure an all-reduce of several sizes: the table of nccl-tests, in place, results checked");
  command->footer(
      "busbw = algbw * 2(n-1)/n is the rate at which the link of a rank is used. #wrong counts the "
      "elements\nthat differ from the exact sum; if there are any, the exit status is 1. `gradsync "
      "fit` reads this table.");
  auto options = std::make_shared<BenchOptions>();
  add_allreduce_run_options(*command, options->run);
  command->add_option("-b,--min-bytes", options->min_bytes, "Smallest size, such as 8, 32K, 25MiB")
      ->capture_default_str();
  command->add_option("-e,--max-bytes", options->max_bytes, "Largest size")->capture_default_str();
  command->add_option("-f,--factor", options->run.bench.factor, "Factor from one size to the next")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON (as nccl-tests -J) instead of the table");
  command->callback([options, &invocation] {
    invocation.action = [options] { return bench_allreduce(*options); };
  });
}

}  // namespace gradsync
