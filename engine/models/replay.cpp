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

/// One gradient of the replayed backward pass. The nodes form a chain from the loss to the last
/// gradient, and each advances the clock by the time since the previous gradient.
class ReplayNode final : public Node {
 public:
  using MakeGradient = std::function<Tensor()>;

  /// `last_end` is shared by the nodes of a pass: the end time of the previous node, initially
  /// negative.
  ReplayNode(NodePtr next, NodePtr leaf, Seconds duration, std::shared_ptr<Seconds> last_end,
             Clock& clock, MakeGradient make_gradient)
      : Node("ReplayedGradient", {std::move(next), std::move(leaf)}),
        duration_(duration),
        last_end_(std::move(last_end)),
        clock_(&clock),
        make_gradient_(std::move(make_gradient)) {}

  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    // On a real clock, the hooks of the previous gradient (copies into buckets) and generating this
    // gradient's values also take time. The profile's times already include such work, so it counts
    // against `duration`.
    const Seconds begin = *last_end_ < Seconds{0} ? clock_->now() : *last_end_;
    Tensor gradient = make_gradient_();
    const Seconds spent = clock_->is_behind_host() ? Seconds{0} : clock_->now() - begin;
    clock_->advance(std::max(Seconds{0}, duration_ - spent));
    *last_end_ = clock_->now();
    return {std::move(grad_output), std::move(gradient)};
  }

 private:
  Seconds duration_;
  std::shared_ptr<Seconds> last_end_;
  Clock* clock_;
  MakeGradient make_gradient_;
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

  // Backward runs from the newest node to the oldest, so the chain starts with the last gradient.
  Variable chain{Tensor::zeros({}, DType::kFloat32, *device_), nullptr};
  const auto last_end = std::make_shared<Seconds>(-1);
  for (std::size_t i = ready_order_.size(); i-- > 0;) {
    const std::size_t p = ready_order_[i];
    const ProfileParameter& parameter = profile_->parameters[p];
    const Seconds before = i == 0 ? Seconds{0} : profile_->parameters[ready_order_[i - 1]].ready;
    const auto make_gradient = [this, p, step = batch.global_step] {
      const ProfileParameter& of = profile_->parameters[p];
      Tensor gradient = Tensor::empty(of.shape, of.dtype, *device_);
      device_->fill_signed_powers(gradient, gradient_key(rank_, step, p), world_size_);
      return gradient;
    };
    chain = graph.record(
        std::move(chain.data),
        std::make_shared<ReplayNode>(std::move(chain.node), graph.leaf(parameters_[p]).node,
                                     (parameter.ready - before) * options_.compute_scale, last_end,
                                     graph.clock(), make_gradient));
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
