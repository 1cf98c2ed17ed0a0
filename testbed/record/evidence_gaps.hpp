#pragma once

#include <string>
#include <vector>

namespace gradsync {

/// What is missing of a run's records where they were read from files. Ranks of which there is no
/// report at all need no entry: their absence shows.
struct EvidenceGaps {
  /// The records of steps are missing or cut: what an absent step would have shown is not known.
  bool steps = false;
  bool scenario = false;           ///< what the job was meant to be is not known
  std::vector<int> summaries;      ///< ranks of which only the summary is there, ascending
  std::vector<std::string> files;  ///< one clause a file: "steps.jsonl is missing"

  bool any() const { return steps || scenario || !summaries.empty() || !files.empty(); }
};

}  // namespace gradsync
