#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync::test {

/// Reports as ranks would have left them, made by hand: tests of what is read from reports need no
/// run.
///
/// Each step of a rank is two all-reduces (buckets 0 and 1, 4 and 2 elements) and takes one second.
class HandMadeRank {
 public:
  explicit HandMadeRank(int rank, int world_size) {
    report_.rank = rank;
    report_.world_size = world_size;
    report_.parameter_tensors = 3;
    report_.parameter_count = 6;
    report_.parameter_bytes = 24;
    report_.buckets = {{0, 16, 4, {"b", "c"}}, {1, 8, 2, {"a"}}};
    names_[0] =
        std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"b", "c"});
    names_[1] = std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"a"});
  }

  HandMadeRank& shard(std::int64_t dataset, std::int64_t samples, std::int64_t steps) {
    report_.dataset_samples = dataset;
    report_.samples_planned = samples;
    report_.steps_planned = steps;
    return *this;
  }

  /// Completes a step.
  HandMadeRank& step(std::int64_t epoch = 0, const std::string& hash = "") {
    const double begin = static_cast<double>(report_.steps_completed);
    StepRecord step;
    step.epoch = epoch;
    step.step = report_.steps_completed;
    step.loss = 8.0 - begin;
    step.grad_norm = 0.5;
    step.learning_rate = 1e-3;
    step.samples = 1;
    step.sample_hash = "00";
    step.parameter_hash = hash.empty() ? "hash-" + std::to_string(step.step) : hash;
    step.begin = Seconds{begin};
    step.data_end = Seconds{begin + 0.1};
    step.forward_end = Seconds{begin + 0.3};
    step.backward_compute_end = Seconds{begin + 0.6};
    step.comm_begin = Seconds{begin + 0.5};
    step.comm_end = Seconds{begin + 0.7};
    step.backward_end = Seconds{begin + 0.7};
    step.clip_end = Seconds{begin + 0.75};
    step.optimizer_end = Seconds{begin + 0.8};
    step.end = Seconds{begin + 0.9};
    for (int bucket : {0, 1}) add(epoch, bucket, CollectiveState::kCompleted);
    report_.steps.push_back(step);
    report_.final_parameter_hash = step.parameter_hash;
    ++report_.steps_completed;
    return *this;
  }

  HandMadeRank& steps(int count) {
    for (int i = 0; i < count; ++i) step();
    return *this;
  }

  /// Stands in the first bucket of the next step, the second one waiting behind it.
  HandMadeRank& blocked(std::int64_t epoch = 0) {
    report_.phase = Phase::kBackward;
    report_.phase_since = Seconds{static_cast<double>(report_.steps_completed) + 0.3};
    add(epoch, 0, CollectiveState::kStarted);
    add(epoch, 1, CollectiveState::kScheduled);
    return *this;
  }

  /// The wait ended with an error, as it does on a real network.
  HandMadeRank& fails(ErrorCode code, const std::string& what, double at) {
    report_.state = RankState::kFailed;
    report_.error_code = code;
    report_.error = what;
    report_.ended = Seconds{at};
    for (CollectiveRecord& record : report_.flight) {
      if (record.state == CollectiveState::kCompleted) continue;
      record.state = CollectiveState::kFailed;
      record.error = what;
      if (!report_.failed_collective) report_.failed_collective = record;
    }
    return *this;
  }

  HandMadeRank& finishes() {
    report_.state = RankState::kFinished;
    report_.phase = Phase::kShutdown;
    report_.phase_since = Seconds{static_cast<double>(report_.steps_completed)};
    report_.ended = report_.phase_since;
    return *this;
  }

  RankReport& report() { return report_; }
  operator RankReport() const { return report_; }

 private:
  void add(std::int64_t epoch, int bucket, CollectiveState state) {
    CollectiveRecord record;
    record.sequence = static_cast<std::int64_t>(report_.flight.size());
    record.group = "default_pg";
    record.elements = bucket == 0 ? 4 : 2;
    record.bytes = record.elements * 4;
    record.label.epoch = epoch;
    record.label.step = report_.steps_completed;
    record.label.phase = Phase::kBackward;
    record.label.bucket = bucket;
    record.label.what = "gradients";
    record.parameters = names_[bucket];
    record.state = state;
    const double at = static_cast<double>(report_.steps_completed) + 0.5 + 0.1 * bucket;
    record.issued = Seconds{at};
    if (state != CollectiveState::kScheduled) record.started = Seconds{at};
    if (state == CollectiveState::kCompleted) record.completed = Seconds{at + 0.1};
    report_.flight.push_back(record);
    if (state == CollectiveState::kCompleted) report_.collectives.push_back(record);
  }

  RankReport report_;
  std::shared_ptr<const std::vector<std::string>> names_[2];
};

/// 10 samples over 4 ranks without padding, batch size 1.
inline Scenario uneven_scenario() {
  Scenario scenario;
  scenario.name = "uneven-shards";
  scenario.ranks = 4;
  scenario.data.samples = 10;
  scenario.sampler.pad = false;
  scenario.train.batch_size = 1;
  return scenario;
}

/// What the simulator leaves of that scenario: a deadlock that nothing ended.
inline std::vector<RankReport> uneven_reports_simulated() {
  return {HandMadeRank(0, 4).shard(10, 3, 3).steps(2).blocked(),
          HandMadeRank(1, 4).shard(10, 3, 3).steps(2).blocked(),
          HandMadeRank(2, 4).shard(10, 2, 2).steps(2).finishes(),
          HandMadeRank(3, 4).shard(10, 2, 2).steps(2).finishes()};
}

/// What a real network leaves: one wait timed out, and the failure spread to the others.
inline std::vector<RankReport> uneven_reports_real() {
  std::vector<RankReport> reports{HandMadeRank(0, 4).shard(10, 3, 3).steps(2).blocked().fails(
                                      ErrorCode::kTimeout, "timed out after 5 s", 7.5),
                                  HandMadeRank(1, 4).shard(10, 3, 3).steps(2).blocked().fails(
                                      ErrorCode::kPeerFailed, "rank 0 timed out", 7.6),
                                  HandMadeRank(2, 4).shard(10, 2, 2).steps(2).finishes(),
                                  HandMadeRank(3, 4).shard(10, 2, 2).steps(2).finishes()};
  for (const std::size_t rank : {2U, 3U}) {
    reports[rank].error_code = ErrorCode::kPeerFailed;
    reports[rank].error = "rank 0 timed out";
  }
  return reports;
}

}  // namespace gradsync::test
