#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/train/rank_report.hpp"

namespace gradsync {

/// A report as JSON and back, with nothing lost: times and losses to the last bit (a value that is
/// not finite travels as the text "NaN", "Infinity" or "-Infinity"). Lists of parameter names stand
/// once, in "parameter_lists"; collectives refer to them by position and share them again when
/// read.
nlohmann::ordered_json to_json(const RankReport& report);

/// Throws Error(kInternal), with the place and what was expected there, for JSON that is no report:
/// a truncated file, another schema version, a wrong type, an unknown word.
RankReport rank_report_from_json(const nlohmann::ordered_json& json);

/// The same from text that may be cut off or no JSON at all; `source` stands for it in the error.
RankReport rank_report_from_text(const std::string& text, const std::string& source);

}  // namespace gradsync
