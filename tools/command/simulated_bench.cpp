#include "tools/command/simulated_bench.hpp"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/point_result.hpp"
#include "tools/command/allreduce_run.hpp"
#include "tools/command/backend_registry.hpp"
#include "tools/command/bench_conditions.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

Scenario scenario_of(const AccuracyTable& table, const Json& cluster, std::int64_t ranks,
                     const Json& set) {
  Json document = table.scenario;
  document["name"] = table.file.stem().string();
  document["backend"] = "sim";
  document["ranks"] = ranks;
  // A simulated transfer of 16 GiB may take longer than the default timeout of 30 s.
  document["timeout"] = "1h";
  if (!cluster.is_null()) document["cluster"] = cluster;
  std::vector<ScenarioOverride> overrides;
  for (const auto& [path, value] : set.items()) overrides.push_back({path, dump_json(value), ""});
  return parse_scenario(dump_json(document), table.file.string(), table.file.parent_path().string(),
                        overrides);
}

/// `set`: assignments to the scenario; the times go into `member` of the rows.
void simulate_allreduce_rows(AccuracyTable& table, const Json& cluster, const Json& set,
                             Seconds AccuracyRow::*member) {
  std::map<std::int64_t, std::vector<AccuracyRow*>> by_ranks;
  for (AccuracyRow& row : table.rows) by_ranks[row.ranks].push_back(&row);
  for (const auto& [ranks, rows] : by_ranks) {
    std::vector<Bytes> sizes;
    for (const AccuracyRow* row : rows) sizes.push_back(row->bytes);
    const BenchTable bench = simulate_allreduces(scenario_of(table, cluster, ranks, set), sizes);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i]->*member = bench.rows.at(i).time;
  }
}

void simulate_training_rows(AccuracyTable& table, const Json& cluster) {
  for (AccuracyRow& row : table.rows) {
    const Scenario scenario = scenario_of(table, cluster, row.ranks, row.set);
    const RunOutcome outcome =
        require_backend(scenario.backend).run(scenario, training_body(scenario));
    const PointResult point = summarize(scenario, outcome, make_result(scenario, outcome));
    if (point.outcome != "completed") {
      throw Error(ErrorCode::kInternal, fmt::format("{}: {} ended as {}: {}", table.file.string(),
                                                    row.what, point.outcome, point.error));
    }
    row.simulated = Seconds(point.step_p50);
  }
}

}  // namespace

Json cluster_with_defaults(const Json& cluster, const std::string& file,
                           const std::string& folder) {
  const Json document = {{"cluster", cluster}, {"backend", "sim"}, {"ranks", 2}};
  Json complete = to_json(parse_scenario(dump_json(document), file, folder)).at("cluster");
  complete.erase("nodes");
  return complete;
}

BenchTable simulate_allreduces(const Scenario& scenario, const std::vector<Bytes>& sizes) {
  check_bench_conditions(scenario);
  PreparedAllreduceRun run;
  run.scenario = scenario;
  run.bench.sizes = sizes;
  run.bench.iterations = 1;
  run.bench.warmup = 0;
  run.bench.check = false;
  run.program = "gradsync, simulated";
  return run_allreduce(run, {});
}

void simulate_table(AccuracyTable& table, const Json& cluster) {
  if (table.is_training) {
    simulate_training_rows(table, cluster);
  } else {
    simulate_allreduce_rows(table, cluster, Json::object(), &AccuracyRow::simulated);
    if (table.left_out.is_null() || !cluster.is_null()) return;
    simulate_allreduce_rows(table, cluster, table.left_out, &AccuracyRow::left_out);
  }
}

}  // namespace gradsync
