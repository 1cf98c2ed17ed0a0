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

/// How a run ended; each outcome has an exit status (0, 4, 5, 6, 2).
enum class Outcome { kCompleted, kHang, kDesync, kFailed, kInvalid };
const char* to_string(Outcome outcome) noexcept;  ///< "completed", "hang", "desync", ...
int exit_status(Outcome outcome) noexcept;

/// The load of one link of a simulated network.
struct LinkLoad {
  std::string name;
  BytesPerSecond bandwidth;    ///< mean over the run if it changed
  double bytes = 0;            ///< of the job
  double bytes_of_others = 0;  ///< of background traffic
  double use = 0;              ///< job's bytes / capacity during collectives
  double use_by_others = 0;    ///< background bytes / capacity during the run
  std::string condition;       ///< its imperfection, if any: "0.5 of its bandwidth"
};

/// The links used by a simulated job; empty for the analytic model.
struct NetworkLoad {
  Seconds communication{0};     ///< time during which a collective joined by all ranks was running
  std::int64_t as_busy = 0;     ///< links within 1 % of the busiest
  std::vector<LinkLoad> links;  ///< the busiest, by use + use_by_others
};

/// "nic-3-0_UP, 96% of its bandwidth in use (0.5 of its bandwidth)"; empty if no link is known.
std::string describe_busiest(const NetworkLoad& network);

/// What a backend returns after a run.
struct RunOutcome {
  std::vector<RankReport> reports;  ///< by rank; a rank without a report has state kRunning
  Seconds wall{0};
  std::optional<Seconds> simulated;  ///< simulator only
  Bytes peak_rss_bytes = 0;          ///< maximum over the processes
  std::vector<std::string> notes;    ///< e.g. "fidelity flow (auto: 1024 ranks)"
  NetworkLoad network;               ///< simulator only
  /// A table per kind and size of collective, explaining the choice of algorithm; simulated NCCL
  /// only.
  std::vector<std::string> explanations;
};

/// One line of a scenario's `expect`, checked against a run (testbed/result/expectations.hpp).
struct ExpectationResult {
  std::string what;      ///< JSON path in the scenario, "expect.outcome"
  std::string expected;  ///< as text
  std::string found;
  bool ok = false;
};

/// The result of a run, as stored in result.json. docs/results.md defines every key with its unit;
/// the members have the same names. Absent values are null there.
struct RunResult {
  struct Parameters {
    std::int64_t count = 0;
    std::int64_t tensors = 0;
    Bytes bytes = 0;
  };
  /// Over steps; the loss of a step is the plain mean over the ranks.
  struct Loss {
    std::optional<double> first, last, mean;
  };
  /// Over steps; the duration of a step is that of the slowest rank.
  struct StepSeconds {
    std::optional<double> min, p50, p95, max, mean;
  };
  /// Over the steady steps (first_steady_step), which represent the rest of the job.
  struct SteadyStepSeconds {
    std::int64_t steps = 0;
    std::optional<double> p50, p95;
  };
  /// Mean seconds per step, over ranks and steps.
  struct TimeBreakdown {
    std::optional<double> forward, backward_compute, backward_comm, exposed_comm, optimizer;
  };
  struct Ddp {
    std::vector<BucketSummary> buckets;
    bool rebuilt = false;
    std::string comm_hook;
    DdpLoggingData logging;  ///< of the first rank with a report
  };

  std::string scenario;
  std::string backend;
  std::int64_t world_size = 0;
  Outcome outcome = Outcome::kCompleted;
  std::int64_t steps_completed = 0;  ///< on every rank with a report
  Parameters parameters;
  /// After the last completed step; absent on meta tensors or if the ranks disagree.
  std::optional<std::string> parameter_hash;
  Loss loss;
  StepSeconds step_seconds;
  SteadyStepSeconds steady_step_seconds;
  diagnosis::Blame blame;  ///< the cost of late ranks, and which ranks are late
  NetworkLoad network;
  TimeBreakdown time_breakdown;
  std::optional<double> simulated_seconds;
  double wall_seconds = 0;
  Bytes peak_rss_bytes = 0;
  Ddp ddp;
  std::optional<Diagnosis> diagnosis;
  std::vector<std::string> notes;
  std::vector<ExpectationResult> expectations;  ///< empty until checked

  int exit_status() const noexcept { return gradsync::exit_status(outcome); }
};

/// Merges the ranks' reports: outcome, statistics over steps and ranks, diagnosis.
RunResult make_result(const Scenario& scenario, const RunOutcome& outcome);

/// result.json: the keys in the order of docs/results.md.
nlohmann::ordered_json to_json(const RunResult& result);

}  // namespace gradsync
