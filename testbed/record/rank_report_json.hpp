#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync {

/// How much of a report to write.
enum class ReportDetail {
  kAll,
  kFlight,   ///< without steps and without the collectives beyond the flight recorder's
  kSummary,  ///< of the collectives only those that tell where the rank stands; no buckets
};

/// A report as JSON and back, with nothing lost: times and losses to the last bit (a value that is
/// not finite travels as the text "NaN", "Infinity" or "-Infinity"). Lists of parameter names stand
/// once, in "parameter_lists"; collectives refer to them by position and share them again when
/// read.
nlohmann::ordered_json to_json(const RankReport& report, ReportDetail detail = ReportDetail::kAll);

/// Throws Error(kUsage), with the place and what was expected there, for JSON that is no report:
/// a truncated file, another schema version, a wrong type, an unknown word.
/// `place` stands for it in the error.
RankReport rank_report_from_json(const nlohmann::ordered_json& json,
                                 const std::string& place = "report");

/// The same from text that may be cut off or no JSON at all; `source` stands for it in the error.
RankReport rank_report_from_text(const std::string& text, const std::string& source);

}  // namespace gradsync
