#include <filesystem>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/collective_bench.hpp"
#include "gradsync/testbed/record/require_finished.hpp"
#include "tools/command/allreduce_run.hpp"
#include "tools/command/backend_registry.hpp"
#include "tools/command/bench_conditions.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/rank_bodies.hpp"

namespace gradsync {
namespace {

struct BenchOptions {
  AllreduceRunOptions run;
  std::string min_bytes = "8";
  std::string max_bytes = "32M";
  bool json = false;
};

struct CollectiveBenchOptions {
  BenchOptions bench;
  int root = 0;
};

int bench_collective(BenchOp op, const CollectiveBenchOptions& options) {
  AllreduceRunOptions run = options.bench.run;
  run.bench.min_bytes = parse_bench_size(options.bench.min_bytes);
  run.bench.max_bytes = parse_bench_size(options.bench.max_bytes);
  PreparedAllreduceRun prepared = prepare_allreduce_run(run);
  const Scenario& scenario = prepared.scenario;
  const int ranks = static_cast<int>(scenario.ranks);
  CollectiveBench bench;
  bench.op = op;
  bench.options = prepared.bench;
  bench.root = options.root;
  const bool on_gloo =
      scenario.backend == "gloo" ||
      (scenario.backend == "sim" && scenario.cluster.library == ClusterSpec::Library::kGloo);
  bench.grouped = !on_gloo;
  if (bench.root < 0 || bench.root >= ranks) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--root {}: the ranks are 0 to {}", bench.root, ranks - 1));
  }
  if (op == BenchOp::kSendrecv && ranks < 2) {
    throw Error(ErrorCode::kUsage, "sendrecv needs two ranks or more: add --ranks 2");
  }
  const std::string program = fmt::format("gradsync bench {} on {}{}", to_string(op),
                                          scenario.backend, describe_bench_conditions(scenario));
  const bool json = options.bench.json;
  if (!json) std::cout << collective_heading(program, ranks) << std::flush;
  std::vector<CollectiveRow> rows;
  const RunOutcome outcome =
      require_backend(scenario.backend)
          .run(scenario, collective_body(bench), [&](const nlohmann::ordered_json& event) {
            rows.push_back(collective_row_from_json(event));
            if (!json) std::cout << collective_line(rows.back(), bench, ranks) << std::flush;
          });
  require_finished(outcome.reports);
  std::cout << (json ? collective_table_json(program, rows, bench, ranks).dump(2) + "\n"
                     : collective_footer(rows, op, ranks));
  return wrong_elements(rows) == 0 ? 0 : 1;
}

void add_size_options(CLI::App& command, BenchOptions& options) {
  command.add_option("-b,--min-bytes", options.min_bytes, "Smallest size, such as 8, 32K, 25MiB")
      ->capture_default_str();
  command.add_option("-e,--max-bytes", options.max_bytes, "Largest size")->capture_default_str();
  command.add_option("-f,--factor", options.run.bench.factor, "Factor from one size to the next")
      ->capture_default_str();
  command.add_flag("--json", options.json, "Print JSON (as nccl-tests -J) instead of the table");
}

/// One subcommand per operation beside the all-reduce.
void add_collective(CLI::App& bench, Invocation& invocation, BenchOp op, const char* what,
                    const char* footer) {
  CLI::App* command = bench.add_subcommand(to_string(op), what);
  command->footer(footer);
  auto options = std::make_shared<CollectiveBenchOptions>();
  add_allreduce_run_options(*command, options->bench.run);
  add_size_options(*command, options->bench);
  if (op == BenchOp::kBroadcast || op == BenchOp::kReduce) {
    command->add_option("-r,--root", options->root, "Its root")->capture_default_str();
  }
  command->callback([options, op, &invocation] {
    invocation.action = [options, op] { return bench_collective(op, *options); };
  });
}

void add_collectives(CLI::App& bench, Invocation& invocation) {
  constexpr const char* kWhole = "busbw = algbw: every byte passes each rank's link once.";
  constexpr const char* kParts =
      "The size is that of all parts together; busbw = algbw * (n-1)/n, because a rank keeps its "
      "own part.";
  add_collective(bench, invocation, BenchOp::kBroadcast, "Measure a broadcast, in place", kWhole);
  add_collective(bench, invocation, BenchOp::kReduce, "Measure a reduce, in place on its root",
                 kWhole);
  add_collective(bench, invocation, BenchOp::kAllgather,
                 "Measure an all-gather, out of place and in place", kParts);
  add_collective(bench, invocation, BenchOp::kReduceScatter,
                 "Measure a reduce-scatter, out of place and in place", kParts);
  add_collective(bench, invocation, BenchOp::kAlltoall, "Measure an alltoall with equal parts",
                 kParts);
  add_collective(bench, invocation, BenchOp::kSendrecv,
                 "Measure a ring: every rank sends to the next and receives from the previous",
                 kWhole);
}

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
  add_size_options(*command, *options);
  add_collectives(*bench, invocation);
  command->callback([options, &invocation] {
    invocation.action = [options] { return bench_allreduce(*options); };
  });
}

}  // namespace gradsync
