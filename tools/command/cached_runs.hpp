#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "gradsync/predict/point_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// One run of many, and what came of it.
struct CachedRun {
  std::string key;
  PointResult result;
  bool reused = false;  ///< its result was in the folder already
};

/// Runs scenarios in processes of their own, `jobs` at a time, and returns their results in order.
///
/// A result is kept as FOLDER/KEY.json, the scenario as it was run beside it. The key is a hash of
/// this program, the resolved scenario and the files that it reads, so a folder can be used again
/// after anything has changed, and a sweep that was stopped goes on where it was. Runs on a real
/// backend that did not complete are run again.
///
/// `on_done` is called as each run ends. A run whose process ended without a result has the outcome
/// "failed".
std::vector<CachedRun> run_cached(
    const std::vector<Scenario>& scenarios, const std::filesystem::path& folder, int jobs,
    const std::function<void(std::size_t index, const CachedRun& run)>& on_done);

/// As many as there are cores where runs are simulated; 1 for real backends, whose ranks would
/// disturb each other.
int default_jobs(const Scenario& scenario);

}  // namespace gradsync
