#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync {

/// How much of a report to write.
enum class ReportDetail {
  kAll,
  kFlight,   ///< without steps and without collectives beyond the flight recorder's
  kSummary,  ///< only the collectives that show where the rank is; no buckets
};

/// Lossless conversion between a report and JSON: times and losses are exact (non-finite values
/// become "NaN", "Infinity" or "-Infinity"). Each list of parameter names is stored once, in
/// "parameter_lists"; collectives refer to it by index and share it again when read.
nlohmann::ordered_json to_json(const RankReport& report, ReportDetail detail = ReportDetail::kAll);

/// Throws Error(kUsage), with the location and what was expected there, for JSON that is not a
/// valid report: a truncated file, another schema version, a wrong type, an unknown word. `place`
/// names the JSON in errors.
RankReport rank_report_from_json(const nlohmann::ordered_json& json,
                                 const std::string& place = "report");

/// Same, from text that may be truncated or not JSON at all; `source` names it in errors.
RankReport rank_report_from_text(const std::string& text, const std::string& source);

}  // namespace gradsync
