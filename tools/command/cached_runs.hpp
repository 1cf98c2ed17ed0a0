#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "gradsync/predict/point_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// One of many runs, with its result.
struct CachedRun {
  std::string key;
  PointResult result;
  bool reused = false;  ///< the result was already in the folder
};

/// Runs scenarios in their own processes, `jobs` at a time, and returns their results in order.
///
/// A result is cached as FOLDER/KEY.json, with its resolved scenario beside it. The key is a hash
/// of this program, the resolved scenario and the files it reads, so a folder stays usable after
/// any change, and an interrupted sweep continues where it stopped. Incomplete runs on a real
/// backend are repeated.
///
/// `on_done` is called as each run ends. A run whose process ended without a result has the outcome
/// "failed".
std::vector<CachedRun> run_cached(
    const std::vector<Scenario>& scenarios, const std::filesystem::path& folder, int jobs,
    const std::function<void(std::size_t index, const CachedRun& run)>& on_done);

/// The number of cores for simulated runs; 1 for real backends, whose ranks would disturb each
/// other.
int default_jobs(const Scenario& scenario);

}  // namespace gradsync
