#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "gradsync/predict/allreduce_bench.hpp"
#include "gradsync/testbed/rank/rank_body.hpp"

namespace gradsync {

/// All-reduces of the benchmark's sizes, with the scenario's faults and imperfections
/// (bench_conditions.hpp). Its events are the rows of the table, see row_of_event.
RankBody allreduce_body(const AllreduceBench& bench);
BenchRow row_of_event(const nlohmann::ordered_json& event);

/// The body that another process has, from what it wrote of it. A new body has a line here.
RankBody make_rank_body(const std::string& name, const nlohmann::ordered_json& arguments,
                        const Scenario& scenario);

}  // namespace gradsync
