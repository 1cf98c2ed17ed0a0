#pragma once

#include <string>
#include <vector>

namespace gradsync {

/// What is missing from the records of a run that were read from files. Ranks without any report
/// need no entry, since their absence is visible.
struct EvidenceGaps {
  /// Step records are missing or truncated, so an absent step proves nothing.
  bool steps = false;
  bool scenario = false;           ///< the scenario is unknown
  std::vector<int> summaries;      ///< ranks with only a summary, ascending
  std::vector<std::string> files;  ///< one clause per file: "steps.jsonl is missing"

  bool any() const { return steps || scenario || !summaries.empty() || !files.empty(); }
};

}  // namespace gradsync
