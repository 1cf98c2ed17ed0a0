#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/rank/rank_main.hpp"

namespace gradsync {

/// Told of a run's progress by rank 0, in the process that started the run. What an event holds is
/// its body's to say: of training, it is a step (see training_body).
using RunObserver = std::function<void(const nlohmann::ordered_json& event)>;

/// The part of one rank. Leaves the report finished and the group shut down, or throws what ended
/// the rank. It may fill the report as it goes; what it leaves open the backend fills in: the
/// state, the error, the time at which the rank ended, the flight record.
///
/// A simulated rank waits by switching to another actor on the same thread. It must therefore not
/// wait inside a catch block or a destructor (the thread's exception state would be shared), and it
/// must let an exception that is not a std::exception pass.
using RankMain = std::function<void(const RankRuntime&, RankReport&)>;

/// What all ranks of a run do, on any backend: train the scenario, measure all-reduces.
struct RankBody {
  /// Where ranks are processes, each of them makes the body again from these two and the scenario.
  std::string name;
  nlohmann::ordered_json arguments;

  /// Called once in every process that has ranks: reads what they share. The scenario and the
  /// observer (empty: nobody observes) must outlive what it returns. Throws ConfigError for a file
  /// that is missing or wrong.
  std::function<RankMain(const Scenario& scenario, const RunObserver& observer)> load;

  // What a simulated rank needs for it; a real one has all of it.
  bool has_payload = false;  ///< tensors have bytes; else they are meta tensors
  bool computes = false;     ///< products of matrices, which take room on the stack
  /// Every rank does the same at the same times, unless a fault or an imperfection tells it from
  /// the others: one can be simulated for all.
  bool is_alike_on_all_ranks = false;
};

inline constexpr const char* kTrainingBody = "training";

/// Trains the scenario (run_rank). Its events are steps (to_json of a StepRecord) without their
/// checksums, which nobody reads while a run goes on.
RankBody training_body(const Scenario& scenario);

}  // namespace gradsync
