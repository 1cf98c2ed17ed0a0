#include "gradsync/testbed/result/run_result.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/record/statistics.hpp"

namespace gradsync {
namespace {

/// The diagnosis decides how a run ended. If every rank finished, the run completed, whatever else
/// the diagnosis says, unless the ranks' parameters differ.
Outcome outcome_of(const std::optional<Diagnosis>& diagnosis, const diagnosis::Digest& digest) {
  if (!diagnosis) return Outcome::kCompleted;
  if (diagnosis->verdict == "silent divergence" || digest.all_finished()) {
    return diagnosis::first_hash_difference(digest) ? Outcome::kDesync : Outcome::kCompleted;
  }
  if (diagnosis->verdict == "desync") return Outcome::kDesync;
  if (diagnosis->verdict == "crash") return Outcome::kFailed;
  return Outcome::kHang;
}

/// A killed rank leaves an empty report, which does not count.
std::int64_t steps_on_every_rank(const std::vector<RankReport>& reports) {
  std::optional<std::int64_t> fewest;
  for (const RankReport& report : reports) {
    if (report.parameter_tensors == 0) continue;
    fewest = std::min(fewest.value_or(report.steps_completed), report.steps_completed);
  }
  return fewest.value_or(0);
}

/// One step of all ranks.
struct StepOfAllRanks {
  std::int64_t ranks = 0;
  double loss_sum = 0;
  std::int64_t losses = 0;
  double seconds = 0;  ///< of the slowest rank
};

std::map<std::int64_t, StepOfAllRanks> merge_steps(const std::vector<RankReport>& reports) {
  std::map<std::int64_t, StepOfAllRanks> steps;
  for (const RankReport& report : reports) {
    for (const StepRecord& record : report.steps) {
      StepOfAllRanks& step = steps[record.step];
      ++step.ranks;
      if (record.loss) {
        step.loss_sum += *record.loss;
        ++step.losses;
      }
      step.seconds = std::max(step.seconds, (record.optimizer_end - record.begin).count());
    }
  }
  return steps;
}

/// Summarizes the steps that every rank completed.
void summarize_steps(RunResult& result, const std::vector<RankReport>& reports) {
  std::vector<double> losses, seconds;
  bool diverged = false;
  for (const auto& [step, merged] : merge_steps(reports)) {
    if (step >= result.steps_completed) break;
    seconds.push_back(merged.seconds);
    if (merged.losses == 0) continue;
    losses.push_back(merged.loss_sum / static_cast<double>(merged.losses));
    if (!std::isfinite(losses.back()) && !diverged) {
      diverged = true;
      result.notes.push_back(fmt::format("the loss is not finite from step {} on", step));
    }
  }
  if (!losses.empty()) result.loss = {losses.front(), losses.back(), mean(losses)};
  if (!seconds.empty()) {
    const std::int64_t first = first_steady_step(std::ssize(seconds));
    std::vector<double> steady(seconds.begin() + first, seconds.end());
    std::sort(steady.begin(), steady.end());
    result.steady_step_seconds = {std::ssize(steady), percentile(steady, 50),
                                  percentile(steady, 95)};
    std::sort(seconds.begin(), seconds.end());
    result.step_seconds = {seconds.front(), percentile(seconds, 50), percentile(seconds, 95),
                           seconds.back(), mean(seconds)};
  }
}

void summarize_times(RunResult& result, const std::vector<RankReport>& reports) {
  double forward = 0, compute = 0, comm = 0, exposed = 0, optimizer = 0;
  std::int64_t count = 0;
  for (const RankReport& report : reports) {
    for (const StepRecord& step : report.steps) {
      if (step.step >= result.steps_completed) continue;
      forward += (step.forward_end - step.data_end).count();
      compute += (step.backward_compute_end - step.forward_end).count();
      comm += (step.comm_end - step.comm_begin).count();
      exposed += (step.backward_end - step.backward_compute_end).count();
      optimizer += (step.optimizer_end - step.backward_end).count();
      ++count;
    }
  }
  if (count == 0) return;
  const auto n = static_cast<double>(count);
  result.time_breakdown = {forward / n, compute / n, comm / n, exposed / n, optimizer / n};
}

/// The hash on which all ranks agree: the final one if all have finished (in a join, possibly after
/// different numbers of steps), otherwise that of the last step that all completed.
std::optional<std::string> common_hash(const std::vector<RankReport>& reports,
                                       std::int64_t steps_completed) {
  const bool finished = std::all_of(reports.begin(), reports.end(), [](const RankReport& report) {
    return report.state == RankState::kFinished;
  });
  std::string common;
  for (const RankReport& report : reports) {
    std::string hash;
    if (finished ||
        (report.state == RankState::kFinished && report.steps_completed == steps_completed)) {
      hash = report.final_parameter_hash;
    } else {
      for (const StepRecord& step : report.steps) {
        if (step.step + 1 == steps_completed) hash = step.parameter_hash;
      }
    }
    if (hash.empty() || (!common.empty() && hash != common)) return std::nullopt;
    common = hash;
  }
  return common.empty() ? std::nullopt : std::optional(common);
}

/// Every rank reports the same model and buckets: take the first report that has them.
void describe_model(RunResult& result, const std::vector<RankReport>& reports) {
  for (const RankReport& report : reports) {
    if (report.parameter_tensors == 0) continue;
    result.parameters = {report.parameter_count, report.parameter_tensors, report.parameter_bytes};
    result.ddp = {report.buckets, report.rebuilt_buckets, report.comm_hook, report.ddp_logging};
    return;
  }
}

/// DDP's warnings without repetition, each with the first rank that issued it.
void add_warnings(RunResult& result, const std::vector<RankReport>& reports) {
  std::set<std::string> seen;
  for (const RankReport& report : reports) {
    for (const std::string& warning : report.warnings) {
      if (seen.insert(warning).second) {
        result.notes.push_back(fmt::format("rank {} warns: {}", report.rank, warning));
      }
    }
  }
}

}  // namespace

const char* to_string(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kCompleted:
      return "completed";
    case Outcome::kHang:
      return "hang";
    case Outcome::kDesync:
      return "desync";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kInvalid:
      return "invalid";
  }
  return "failed";
}

int exit_status(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kCompleted:
      return 0;
    case Outcome::kHang:
      return 4;
    case Outcome::kDesync:
      return 5;
    case Outcome::kFailed:
      return 6;
    case Outcome::kInvalid:
      return 2;
  }
  return 6;
}

std::string describe_busiest(const NetworkLoad& network) {
  if (network.links.empty()) return {};
  constexpr double kShort = 0.5;
  const LinkLoad& link = network.links.front();
  // Background traffic outside of collectives may push the sum above the capacity.
  const double use = std::min(link.use + link.use_by_others, 1.0);
  std::string text = fmt::format("{}, {:.0f}% of its {:.3g} GB/s in use", link.name, use * 100,
                                 link.bandwidth.value / 1e9);
  if (link.use_by_others > 0) {
    text += fmt::format(", {:.0f}% by others", std::min(link.use_by_others, 1.0) * 100);
  }
  if (!link.condition.empty()) text += " (" + link.condition + ")";
  if (network.as_busy > 1) text += fmt::format("; {} links equally busy", network.as_busy);
  if (use < kShort) text += "; limited by latency";
  return text;
}

RunResult make_result(const Scenario& scenario, const RunOutcome& outcome) {
  const std::vector<RankReport>& reports = outcome.reports;
  RunResult result;
  result.scenario = scenario.name;
  result.backend = scenario.backend;
  result.world_size = scenario.ranks;
  result.wall_seconds = outcome.wall.count();
  if (outcome.simulated) result.simulated_seconds = outcome.simulated->count();
  result.peak_rss_bytes = outcome.peak_rss_bytes;
  for (const RankReport& report : reports) {
    result.peak_rss_bytes = std::max(result.peak_rss_bytes, report.peak_rss_bytes);
  }
  result.notes = outcome.notes;
  result.network = outcome.network;
  result.diagnosis = diagnose(reports, scenario);
  const diagnosis::Digest digest = diagnosis::make_digest(reports, scenario);
  result.outcome = outcome_of(result.diagnosis, digest);
  result.steps_completed = steps_on_every_rank(reports);
  result.parameter_hash = common_hash(reports, result.steps_completed);
  describe_model(result, reports);
  add_warnings(result, reports);
  summarize_steps(result, reports);
  summarize_times(result, reports);
  result.blame = diagnosis::find_blame(digest);
  return result;
}

}  // namespace gradsync
