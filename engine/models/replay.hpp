#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gradsync/models/model.hpp"
#include "gradsync/models/profile.hpp"
#include "gradsync/models/replay_options.hpp"

namespace gradsync {

/// Replays the timing of a profile without computing: `forward` advances the clock by the forward
/// time, and backward advances it from one gradient to the next and fires the hooks in the
/// profile's order. The loss is a float32 scalar 0.
///
/// On a device with memory, gradients have the values of `replay_gradient`, and parameters start
/// from small values that are the same on every machine. On the meta device no tensor has data.
class ReplayModel final : public Model {
 public:
  ReplayModel(std::shared_ptr<const ModelProfile> profile, int rank, int world_size,
              const ReplayOptions& options, Device& device);

  const std::vector<ParameterPtr>& parameters() const override { return parameters_; }
  const std::vector<BufferPtr>& buffers() const override { return buffers_; }
  std::vector<Variable> forward(const Batch& batch, Graph& graph) override;
  Seconds replayed_optimizer_time() const override;

 private:
  std::shared_ptr<const ModelProfile> profile_;
  std::vector<std::size_t> ready_order_;
  int rank_;
  int world_size_;
  ReplayOptions options_;
  Device* device_;
  std::vector<ParameterPtr> parameters_;
  std::vector<BufferPtr> buffers_;
};

/// Element `element` of the local gradient of `parameter` (its index) on `rank` in optimizer step
/// `step`: world_size * s * 2^j, with a sign s and j in 0..3 taken from a hash of the arguments.
/// Scaled by 1/world_size (by multiplication or division) it is exactly s * 2^j, and sums of such
/// numbers are exact in any order, so a mean over ranks can be checked bit for bit for every world
/// size (up to 256 in bfloat16 and 4096 in float16).
double replay_gradient(int world_size, int rank, std::int64_t step, std::size_t parameter,
                       std::int64_t element);
/// The mean of `replay_gradient` over all ranks: the exact value of an all-reduced gradient.
double replay_mean_gradient(int world_size, std::int64_t step, std::size_t parameter,
                            std::int64_t element);

}  // namespace gradsync
