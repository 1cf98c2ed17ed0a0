#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/rank/rank_main.hpp"

namespace gradsync {

/// Receives the progress of rank 0, in the process that started the run. The body defines the
/// contents of an event: for training, a step (see training_body).
using RunObserver = std::function<void(const nlohmann::ordered_json& event)>;

/// Runs one rank. Either completes the report and shuts down the group, or throws the error that
/// ended the rank. It may fill the report as it goes; the backend fills in what is missing: the
/// state, the error, the time at which the rank ended, the flight record.
///
/// A simulated rank waits by switching to another actor on the same thread. It must therefore not
/// wait inside a catch block or a destructor (the thread's exception state would be shared), and it
/// must not catch exceptions that are not a std::exception.
using RankMain = std::function<void(const RankRuntime&, RankReport&)>;

/// What all ranks of a run do, on any backend: train the scenario, or measure all-reduces.
struct RankBody {
  /// If ranks are processes, each process rebuilds the body from the name, the arguments and the
  /// scenario.
  std::string name;
  nlohmann::ordered_json arguments;

  /// Called once in every process that has ranks; loads what its ranks share. The scenario and the
  /// observer (may be empty) must outlive the result. Throws ConfigError for a missing or invalid
  /// file.
  std::function<RankMain(const Scenario& scenario, const RunObserver& observer)> load;

  // Requirements of a simulated rank; a real rank meets all of them.
  bool has_payload = false;  ///< tensors have data; otherwise they are meta tensors
  bool computes = false;     ///< matrix products, which need stack space
  /// All ranks do the same at the same times, except for faults and imperfections, so one rank can
  /// be simulated on behalf of all.
  bool is_alike_on_all_ranks = false;
};

inline constexpr const char* kTrainingBody = "training";

/// Trains the scenario (run_rank). Its events are steps (to_json of a StepRecord), without
/// checksums.
RankBody training_body(const Scenario& scenario);

}  // namespace gradsync
