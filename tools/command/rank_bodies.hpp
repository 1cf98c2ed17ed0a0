#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "gradsync/predict/collective_bench.hpp"
#include "gradsync/testbed/rank/rank_body.hpp"

namespace gradsync {

/// All-reduces of the benchmark's sizes, with the scenario's faults and imperfections
/// (bench_conditions.hpp). Its events are table rows, see row_of_event.
RankBody allreduce_body(const AllreduceBench& bench);
BenchRow row_of_event(const nlohmann::ordered_json& event);

/// Another operation's benchmark, under the same conditions. Its events are to_json(CollectiveRow).
RankBody collective_body(const CollectiveBench& bench);

/// Recreates the body of another process from its name and arguments. Add new bodies here.
RankBody make_rank_body(const std::string& name, const nlohmann::ordered_json& arguments,
                        const Scenario& scenario);

}  // namespace gradsync
