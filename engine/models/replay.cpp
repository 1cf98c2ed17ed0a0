#include "gradsync/models/replay.hpp"

#include <algorithm>
#include <utility>

#include "gradsync/core/random.hpp"

namespace gradsync {
namespace {

/// A hash per gradient; the elements mix it with their position.
std::uint32_t gradient_key(int rank, std::int64_t step, std::size_t parameter) {
  const CounterRandom random(splitmix64(static_cast<std::uint64_t>(step)),
                             static_cast<std::uint64_t>(rank));
  return static_cast<std::uint32_t>(random.bits(parameter) >> 32);
}

/// A tensor of `dtype` with value(i), computed in float32, at position i.
template <typename Value>
Tensor make_tensor(const Shape& shape, DType dtype, Device& device, Value value) {
  if (device.type() == DeviceType::kMeta) return Tensor::empty(shape, dtype, device);
  std::vector<float> values(static_cast<std::size_t>(numel_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(value(static_cast<std::int64_t>(i)));
  }
  Tensor wide = Tensor::empty(shape, DType::kFloat32, device);
  device.copy_from_host(wide, std::as_bytes(std::span(values)));
  if (dtype == DType::kFloat32) return wide;
  Tensor tensor = Tensor::empty(shape, dtype, device);
  device.cast(tensor, wide);
  return tensor;
}

/// What the nodes of one replayed backward pass share.
struct ReplayPass {
  Clock* clock;
  std::function<Tensor(std::size_t parameter)> make_gradient;
  std::function<Seconds(std::size_t position)> duration;  ///< since the previous gradient
  Seconds last_end{-1};                                   ///< of the previous node
};

/// One gradient of the replayed backward pass. The nodes form a chain from the loss to the last
/// gradient, and each advances the clock by the time since the previous gradient.
class ReplayNode final : public Node {
 public:
  /// `position`: in the order in which gradients become ready.
  ReplayNode(NodePtr next, NodePtr leaf, std::shared_ptr<ReplayPass> pass, std::size_t position,
             std::size_t parameter)
      : Node("ReplayedGradient", {std::move(next), std::move(leaf)}),
        pass_(std::move(pass)),
        position_(static_cast<std::uint32_t>(position)),
        parameter_(static_cast<std::uint32_t>(parameter)) {}

  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    // On a real clock, the hooks of the previous gradient (copies into buckets) and generating this
    // gradient's values also take time. The profile's times already include such work, so it counts
    // against the duration.
    Clock& clock = *pass_->clock;
    const Seconds begin = pass_->last_end < Seconds{0} ? clock.now() : pass_->last_end;
    Tensor gradient = pass_->make_gradient(parameter_);
    const Seconds spent = clock.is_behind_host() ? Seconds{0} : clock.now() - begin;
    clock.advance(std::max(Seconds{0}, pass_->duration(position_) - spent));
    pass_->last_end = clock.now();
    return {std::move(grad_output), std::move(gradient)};
  }

 private:
  std::shared_ptr<ReplayPass> pass_;
  std::uint32_t position_;
  std::uint32_t parameter_;
};

}  // namespace

ReplayModel::ReplayModel(std::shared_ptr<const ModelProfile> profile, int rank, int world_size,
                         const ReplayOptions& options, Device& device)
    : profile_(std::move(profile)),
      ready_order_(profile_->ready_order()),
      rank_(rank),
      world_size_(world_size),
      options_(options),
      device_(&device) {
  for (std::size_t p = 0; p < profile_->parameters.size(); ++p) {
    const ProfileParameter& parameter = profile_->parameters[p];
    // Multiples of 1/256 below 1/2: exact in every dtype and identical on every machine.
    const auto initial = [random = CounterRandom(0, p)](std::int64_t element) {
      const auto byte = static_cast<int>(random.bits(static_cast<std::uint64_t>(element)) >> 56);
      return (byte - 128) / 256.0;
    };
    parameters_.push_back(std::make_shared<Parameter>(
        parameter.name, make_tensor(parameter.shape, parameter.dtype, device, initial)));
  }
  for (const ProfileBuffer& buffer : profile_->buffers) {
    buffers_.push_back(std::make_shared<Buffer>(
        Buffer{buffer.name, Tensor::zeros(buffer.shape, buffer.dtype, device)}));
  }
}

std::vector<Variable> ReplayModel::forward(const Batch& batch, Graph& graph) {
  graph.clock().advance(profile_->forward_time * options_.compute_scale);

  const auto pass = std::make_shared<ReplayPass>();
  pass->clock = &graph.clock();
  pass->make_gradient = [this, step = batch.global_step](std::size_t p) {
    const ProfileParameter& of = profile_->parameters[p];
    Tensor gradient = Tensor::empty(of.shape, of.dtype, *device_);
    if (!gradient.is_meta()) {
      device_->fill_signed_powers(gradient, gradient_key(rank_, step, p), world_size_);
    }
    return gradient;
  };
  pass->duration = [this](std::size_t i) {
    const auto ready = [&](std::size_t at) { return profile_->parameters[ready_order_[at]].ready; };
    return (ready(i) - (i == 0 ? Seconds{0} : ready(i - 1))) * options_.compute_scale;
  };

  // Backward runs from the newest node to the oldest, so the chain starts with the last gradient.
  Variable chain{Tensor::zeros({}, DType::kFloat32, *device_), nullptr};
  for (std::size_t i = ready_order_.size(); i-- > 0;) {
    const std::size_t p = ready_order_[i];
    NodePtr leaf = graph.leaf(parameters_[p]).node;
    chain = graph.record(
        std::move(chain.data),
        std::make_shared<ReplayNode>(std::move(chain.node), std::move(leaf), pass, i, p));
  }
  return {std::move(chain)};
}

Seconds ReplayModel::replayed_optimizer_time() const {
  return profile_->optimizer_time * options_.compute_scale;
}

double replay_gradient(int world_size, int rank, std::int64_t step, std::size_t parameter,
                       std::int64_t element) {
  return world_size * signed_power(gradient_key(rank, step, parameter), element);
}

double replay_mean_gradient(int world_size, std::int64_t step, std::size_t parameter,
                            std::int64_t element) {
  double sum = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    sum += signed_power(gradient_key(rank, step, parameter), element);
  }
  return sum;
}

}  // namespace gradsync
