#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync {

/// A step as written in reports and, preceded by the rank, in steps.jsonl.
nlohmann::ordered_json to_json(const StepRecord& step);
StepRecord step_from_json(const nlohmann::ordered_json& json, const std::string& path);

}  // namespace gradsync
