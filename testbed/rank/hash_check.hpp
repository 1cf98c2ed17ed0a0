#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/comm/process_group.hpp"
#include "gradsync/testbed/record/step_recorder.hpp"

namespace gradsync {

/// With train.check_hashes: compares the parameters of all ranks after each step that the scenario
/// hashes.
class HashCheck final : public LoopObserver {
 public:
  /// Wraps `recorder`, which computes the hash. All arguments must outlive this object.
  HashCheck(const TrainSpec& train, ProcessGroup& group, Device& device, Clock& clock,
            const StepRecorder& recorder, ReportKeeper& keeper)
      : train_(&train),
        group_(&group),
        device_(&device),
        clock_(&clock),
        recorder_(&recorder),
        keeper_(&keeper) {}

  /// Throws Error(kDesync) like check_equal_hashes.
  void after_optimizer(const LoopPosition& at) override;

 private:
  const TrainSpec* train_;
  ProcessGroup* group_;
  Device* device_;
  Clock* clock_;
  const StepRecorder* recorder_;
  ReportKeeper* keeper_;
};

/// Compares this rank's hash with those of all others (an allgather of 16 bytes on `device`). If
/// they differ, throws Error(kDesync) on every rank, naming the step and the ranks that disagree.
void check_equal_hashes(ProcessGroup& group, Device& device, const Hash128& hash,
                        std::int64_t epoch, std::int64_t step);

/// "ranks 0, 2-3 have 0123..., rank 1 has 4567...", the largest group first; empty if all are
/// equal.
std::string describe_difference(std::span<const std::string> hashes);

}  // namespace gradsync
