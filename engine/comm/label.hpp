#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradsync {

/// The phase of the training loop a rank is in. Part of every collective's record and of the rank's
/// status.
enum class Phase {
  kInit,        ///< rendezvous, model construction, DDP's constructor
  kData,        ///< drawing a batch
  kForward,     ///< includes DDP's collectives before the model runs
  kBackward,    ///< includes waiting for the buckets
  kOptimizer,   ///< clipping and the update
  kCheck,       ///< consistency checks by the engine (hashes, signatures)
  kJoin,        ///< shadowing the other ranks after this one ran out of inputs
  kEvaluation,  ///< forward passes without training
  kCheckpoint,  ///< writing a checkpoint
  kUser,        ///< user code outside the phases above
  kShutdown,    ///< done, waiting for the others
};

const char* to_string(Phase phase) noexcept;

/// The purpose of a collective, in terms of the training loop. Collectives that match must have
/// equal labels. Equal sizes are not enough: a skipped step would silently pair step k with step
/// k+1.
struct CollectiveLabel {
  std::int64_t epoch = -1;  ///< -1 before the first epoch
  std::int64_t step = -1;   ///< optimizer steps since the start of the run; -1 before the first
  std::int64_t micro_step = 0;
  Phase phase = Phase::kInit;
  std::int32_t bucket = -1;  ///< index in launch order; -1 where there is no bucket
  std::string what;          ///< e.g. "gradients", "parameter shapes", "rebuilt bucket indices"
  /// Call site of the collective in the engine or the user's program, "file:line"; may be empty.
  std::string site;
};

/// "step 2 (epoch 0) backward, bucket 1 (gradients)"
std::string describe(const CollectiveLabel& label);

}  // namespace gradsync
