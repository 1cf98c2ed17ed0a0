#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradsync {

/// Where in the training loop a rank is. Collectives carry it, and so does a rank's status.
enum class Phase {
  kInit,        ///< rendezvous, model construction, DDP's constructor
  kData,        ///< drawing a batch
  kForward,     ///< includes what DDP communicates before the model runs
  kBackward,    ///< includes waiting for the buckets
  kOptimizer,   ///< clipping and the update
  kCheck,       ///< comparisons that the engine makes for itself (hashes, signatures)
  kJoin,        ///< shadowing other ranks after this one ran out of inputs
  kEvaluation,  ///< forward passes that are not trained on
  kCheckpoint,  ///< writing down where the training is
  kUser,        ///< what the program does beside all this
  kShutdown,    ///< done, waiting for the others
};

const char* to_string(Phase phase) noexcept;

/// What a collective is for, in terms of the training loop. Two collectives that meet must have
/// equal labels; equal sizes are not enough (a skipped step pairs step k with step k+1 silently).
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
