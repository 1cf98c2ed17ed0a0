#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/testbed/diagnosis/blame.hpp"
#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The one way in which a run ended; each has an exit status (0, 4, 5, 6, 2).
enum class Outcome { kCompleted, kHang, kDesync, kFailed, kInvalid };
const char* to_string(Outcome outcome) noexcept;  ///< "completed", "hang", "desync", ...
int exit_status(Outcome outcome) noexcept;

/// A link of a simulated network, and what has passed over it.
struct LinkLoad {
  std::string name;
  BytesPerSecond bandwidth;    ///< that it had; the mean over the run where it changed
  double bytes = 0;            ///< of the job
  double bytes_of_others = 0;  ///< background traffic
  double use = 0;  ///< the job's bytes as a part of what fits through it while collectives go on
  double use_by_others = 0;  ///< the others' bytes as a part of what fits through it in the run
  std::string condition;     ///< what is wrong with it, where something is: "0.5 of its bandwidth"
};

/// The links that a simulated job has used; none in a closed form.
struct NetworkLoad {
  Seconds communication{0};     ///< in which a collective that all ranks had joined went on
  std::int64_t as_busy = 0;     ///< links that are as busy as the first, within a hundredth
  std::vector<LinkLoad> links;  ///< the busiest, by use and use_by_others
};

/// "nic-3-0_UP, 96% of its bandwidth in use (0.5 of its bandwidth)"; empty where no link is known.
std::string describe_busiest(const NetworkLoad& network);

/// What a backend hands back after a run.
struct RunOutcome {
  std::vector<RankReport> reports;  ///< by rank; a rank that left none has state kRunning
  Seconds wall{0};
  std::optional<Seconds> simulated;  ///< simulator only
  Bytes peak_rss_bytes = 0;          ///< largest of the processes
  std::vector<std::string> notes;    ///< e.g. "fidelity flow (auto: 1024 ranks)"
  NetworkLoad network;               ///< simulator only
  /// Why each kind and size of collective went the way it went, as a table each; simulated NCCL
  /// only.
  std::vector<std::string> explanations;
};

/// One line of a scenario's `expect`, held against a run (engine/train/expectations.hpp).
struct ExpectationResult {
  std::string what;      ///< JSON path in the scenario, "expect.outcome"
  std::string expected;  ///< as text
  std::string found;
  bool ok = false;
};

/// The result of a run: what result.json holds. docs/results.md defines every key, with its unit;
/// the members have the same names. Absent values are null there.
struct RunResult {
  struct Parameters {
    std::int64_t count = 0;
    std::int64_t tensors = 0;
    Bytes bytes = 0;
  };
  /// Over steps; each step's loss is the plain mean over the ranks.
  struct Loss {
    std::optional<double> first, last, mean;
  };
  /// Over steps; a step lasts as long as on the slowest rank.
  struct StepSeconds {
    std::optional<double> min, p50, p95, max, mean;
  };
  /// Over the steady steps (first_steady_step): what the job goes on with.
  struct SteadyStepSeconds {
    std::int64_t steps = 0;
    std::optional<double> p50, p95;
  };
  /// Mean seconds a step, over ranks and steps.
  struct TimeBreakdown {
    std::optional<double> forward, backward_compute, backward_comm, exposed_comm, optimizer;
  };
  struct Ddp {
    std::vector<BucketSummary> buckets;
    bool rebuilt = false;
    std::string comm_hook;
    DdpLoggingData logging;  ///< of the first rank that left a report
  };

  std::string scenario;
  std::string backend;
  std::int64_t world_size = 0;
  Outcome outcome = Outcome::kCompleted;
  std::int64_t steps_completed = 0;  ///< on every rank that left a report
  Parameters parameters;
  /// After the last completed step; absent where tensors are meta or the ranks do not agree.
  std::optional<std::string> parameter_hash;
  Loss loss;
  StepSeconds step_seconds;
  SteadyStepSeconds steady_step_seconds;
  diagnosis::Blame blame;  ///< what ranks that come late cost, and which they are
  NetworkLoad network;
  TimeBreakdown time_breakdown;
  std::optional<double> simulated_seconds;
  double wall_seconds = 0;
  Bytes peak_rss_bytes = 0;
  Ddp ddp;
  std::optional<Diagnosis> diagnosis;
  std::vector<std::string> notes;
  std::vector<ExpectationResult> expectations;  ///< empty until somebody checked them

  int exit_status() const noexcept { return gradsync::exit_status(outcome); }
};

/// Merges the ranks' reports: outcome, statistics over steps and ranks, diagnosis.
RunResult make_result(const Scenario& scenario, const RunOutcome& outcome);

/// result.json: the keys in the order of docs/results.md.
nlohmann::ordered_json to_json(const RunResult& result);

}  // namespace gradsync
