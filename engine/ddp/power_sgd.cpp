#include "gradsync/ddp/power_sgd.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/core/generator.hpp"
#include "gradsync/ddp/control_tensor.hpp"
#include "gradsync/tensor/kernels.hpp"

namespace gradsync {
namespace {

/// A gradient M[n, m] and its low-rank factors: M is approximately P Q^T. Q is stored transposed:
/// the r rows of `qt` are the columns of PyTorch's Q.
struct LowRank {
  Tensor gradient;
  Tensor p;   ///< [n, r]
  Tensor qt;  ///< [r, m]
};

/// Orthonormalizes vectors (Gram-Schmidt). Element i of vector k is values[k * step + i * stride].
/// A zero vector stays zero unless `epsilon` is positive.
void orthogonalize(std::vector<float>& values, std::size_t count, std::size_t length,
                   std::size_t step, std::size_t stride, double epsilon) {
  const auto at = [&](std::size_t vector, std::size_t i) -> float& {
    return values[vector * step + i * stride];
  };
  const auto product = [&](std::size_t a, std::size_t b) {
    float sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += at(a, i) * at(b, i);
    return sum;
  };
  for (std::size_t k = 0; k < count; ++k) {
    const float norm = std::sqrt(product(k, k)) + static_cast<float>(epsilon);
    for (std::size_t i = 0; i < length; ++i) at(k, i) = norm == 0 ? 0 : at(k, i) / norm;
    for (std::size_t later = k + 1; later < count; ++later) {
      const float part = product(k, later);
      for (std::size_t i = 0; i < length; ++i) at(later, i) -= part * at(k, i);
    }
  }
}

class PowerSgd {
 public:
  explicit PowerSgd(const PowerSgdOptions& options)
      : options_(options), random_(options.random_seed) {
    if (options.matrix_approximation_rank < 1) {
      throw Error(ErrorCode::kMisuse, "PowerSGD: matrix_approximation_rank must be at least 1");
    }
    if ((options.use_error_feedback || options.warm_start) && options.start_powerSGD_iter <= 1) {
      throw Error(ErrorCode::kMisuse,
                  "PowerSGD: start_powerSGD_iter must be at least 2 if use_error_feedback or "
                  "warm_start is set, because the buckets are rebuilt before the second iteration");
    }
  }

  BucketFuture reduce(GradBucket& bucket, const CommHookContext& context, bool whole_bucket);

 private:
  struct BucketState {
    Tensor error;
    Tensor p_memory;
    Tensor q_memory;
  };
  struct Reduction;  // one bucket in one iteration

  static BucketFuture reduce_in_full(Tensor buffer, const CommHookContext& context);
  std::vector<Tensor> split(const GradBucket& bucket, Reduction& reduction) const;
  Tensor pack_uncompressed(const std::vector<Tensor>& tensors, const Tensor& buffer) const;
  void make_factors(std::vector<Tensor> matrices, Reduction& reduction);
  void orthogonalize_columns(Tensor& p) const;
  void orthogonalize_rows(Tensor& qt) const;
  void finish(Reduction& reduction);

  PowerSgdOptions options_;
  std::int64_t iteration_ = 0;
  std::map<std::int64_t, BucketState> states_;  // by bucket
  Generator random_;
};

struct PowerSgd::Reduction {
  std::int64_t index;
  bool is_last;
  CommHookContext context;
  Tensor buffer;  ///< the bucket's buffer, which receives the result
  Tensor input;   ///< with error feedback: the gradient before compression
  std::vector<Tensor> uncompressed;
  Tensor uncompressed_memory;  ///< undefined if the whole bucket is one matrix
  std::vector<LowRank> factors;
  Tensor square;  ///< the padded bucket, if it is one matrix
  WorkPtr uncompressed_work;
  WorkPtr p_work;
};

BucketFuture PowerSgd::reduce_in_full(Tensor buffer, const CommHookContext& context) {
  buffer.device().divide(buffer, context.group().size());
  WorkPtr work = context.group().allreduce(buffer, ReduceOp::kSum, context.options("gradients"));
  return [work = std::move(work), buffer] {
    work->wait();
    return buffer;
  };
}

BucketFuture PowerSgd::reduce(GradBucket& bucket, const CommHookContext& context,
                              bool whole_bucket) {
  Tensor buffer = bucket.buffer();
  if (buffer.dtype() != DType::kFloat32) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("rank {}: PowerSGD compresses float32 gradients, bucket {} is {}",
                            context.group().rank(), bucket.index(), to_string(buffer.dtype())));
  }
  if (iteration_ < options_.start_powerSGD_iter) {
    if (bucket.is_last()) ++iteration_;
    return reduce_in_full(std::move(buffer), context);
  }

  auto reduction = std::make_shared<Reduction>(
      Reduction{bucket.index(), bucket.is_last(), context, buffer, {}, {}, {}, {}, {}, {}, {}});
  Device& device = buffer.device();
  if (options_.use_error_feedback) {
    Tensor& error = states_[bucket.index()].error;
    if (error.defined()) device.add(buffer, error);
    reduction->input = buffer.clone();
  }

  ProcessGroup& group = context.group();
  if (whole_bucket) {
    const auto side =
        static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(buffer.numel()))));
    reduction->square = Tensor::zeros({side, side}, DType::kFloat32, device);
    Tensor filled = reduction->square.slice(0, buffer.shape());
    device.copy(filled, buffer);
    make_factors({reduction->square}, *reduction);
  } else {
    make_factors(split(bucket, *reduction), *reduction);
    reduction->uncompressed_memory = pack_uncompressed(reduction->uncompressed, buffer);
    reduction->uncompressed_work = group.allreduce(reduction->uncompressed_memory, ReduceOp::kSum,
                                                   context.options("uncompressed gradients"));
  }
  reduction->p_work = group.allreduce(states_[bucket.index()].p_memory, ReduceOp::kSum,
                                      context.options("left factors"));
  return [this, reduction] {
    finish(*reduction);
    return reduction->buffer;
  };
}

/// Returns the matrices worth compressing, grouped by shape in order of first appearance (PyTorch's
/// order, on which its random start depends). The other tensors go to `uncompressed`.
std::vector<Tensor> PowerSgd::split(const GradBucket& bucket, Reduction& reduction) const {
  std::vector<std::vector<Tensor>> by_shape;
  for (const Tensor& gradient : bucket.gradients()) {
    const std::int64_t rows = gradient.shape().empty() ? 1 : gradient.shape().front();
    const std::int64_t columns = rows == 0 ? 0 : gradient.numel() / rows;
    const auto sent = static_cast<double>((rows + columns) * options_.matrix_approximation_rank);
    if (!(sent * options_.min_compression_rate < static_cast<double>(rows * columns))) {
      reduction.uncompressed.push_back(gradient);
      continue;
    }
    const Tensor matrix = gradient.view({rows, columns});
    const auto same = std::find_if(by_shape.begin(), by_shape.end(), [&](const auto& group) {
      return group.front().shape() == matrix.shape();
    });
    if (same == by_shape.end()) {
      by_shape.push_back({matrix});
    } else {
      same->push_back(matrix);
    }
  }
  std::vector<Tensor> matrices;
  for (const auto& group : by_shape) matrices.insert(matrices.end(), group.begin(), group.end());
  return matrices;
}

Tensor PowerSgd::pack_uncompressed(const std::vector<Tensor>& tensors, const Tensor& buffer) const {
  std::int64_t elements = 0;
  for (const Tensor& tensor : tensors) elements += tensor.numel();
  Tensor memory = Tensor::empty({elements}, buffer.dtype(), buffer.device());
  std::int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    Tensor place = memory.slice(offset, tensor.shape());
    tensor.device().copy(place, tensor);
    offset += tensor.numel();
  }
  return memory;
}

/// Allocates the factors of a bucket or reuses those of the last iteration, orthonormalizes the
/// right ones, and computes the left ones: P = M Q.
void PowerSgd::make_factors(std::vector<Tensor> matrices, Reduction& reduction) {
  BucketState& state = states_[reduction.index];
  const bool fresh = !options_.warm_start || !state.p_memory.defined();
  const auto rank_of = [this](const Tensor& m) {
    return std::min({m.shape()[0], m.shape()[1], options_.matrix_approximation_rank});
  };
  Device& device = reduction.buffer.device();
  if (fresh) {
    std::int64_t p_elements = 0;
    std::int64_t q_elements = 0;
    for (const Tensor& matrix : matrices) {
      p_elements += matrix.shape()[0] * rank_of(matrix);
      q_elements += matrix.shape()[1] * rank_of(matrix);
    }
    state.p_memory = Tensor::empty({p_elements}, DType::kFloat32, device);
    state.q_memory = Tensor::empty({q_elements}, DType::kFloat32, device);
  }
  // The seed differs in every iteration and is equal on all ranks. It follows numpy's
  // RandomState.randint(10^9), which draws 30 bits until the value is below the bound.
  std::uint32_t seed = 0;
  if (fresh) {
    do {
      seed = random_.random32() & 0x3fffffffu;
    } while (seed >= 1000000000u);
  }
  Generator generator(seed);

  std::int64_t p_offset = 0;
  std::int64_t q_offset = 0;
  for (const Tensor& matrix : matrices) {
    const std::int64_t rows = matrix.shape()[0];
    const std::int64_t columns = matrix.shape()[1];
    const std::int64_t rank = rank_of(matrix);
    LowRank low{matrix, state.p_memory.slice(p_offset, {rows, rank}),
                state.q_memory.slice(q_offset, {rank, columns})};
    p_offset += rows * rank;
    q_offset += columns * rank;
    if (fresh && !low.qt.is_meta()) {
      // Drawn as Q[m, r], row by row.
      const auto drawn = generator.randn(static_cast<std::size_t>(columns * rank));
      std::vector<float> transposed(drawn.size());
      const auto r = static_cast<std::size_t>(rank);
      const auto m = static_cast<std::size_t>(columns);
      for (std::size_t i = 0; i < drawn.size(); ++i) transposed[i % r * m + i / r] = drawn[i];
      device.copy_from_host(low.qt, std::as_bytes(std::span(transposed)));
    }
    orthogonalize_rows(low.qt);
    device.kernels().linear_forward(low.p, low.gradient, low.qt, Tensor());
    reduction.factors.push_back(std::move(low));
  }
}

void PowerSgd::orthogonalize_columns(Tensor& p) const {
  if (p.is_meta()) return;
  auto values = control_values<float>(p);
  const auto rows = static_cast<std::size_t>(p.shape()[0]);
  const auto rank = static_cast<std::size_t>(p.shape()[1]);
  orthogonalize(values, rank, rows, 1, rank, options_.orthogonalization_epsilon);
  p.device().copy_from_host(p, std::as_bytes(std::span(values)));
}

void PowerSgd::orthogonalize_rows(Tensor& qt) const {
  if (qt.is_meta()) return;
  auto values = control_values<float>(qt);
  const auto rank = static_cast<std::size_t>(qt.shape()[0]);
  const auto columns = static_cast<std::size_t>(qt.shape()[1]);
  orthogonalize(values, rank, columns, columns, 1, options_.orthogonalization_epsilon);
  qt.device().copy_from_host(qt, std::as_bytes(std::span(values)));
}

void PowerSgd::finish(Reduction& reduction) {
  Device& device = reduction.buffer.device();
  ProcessGroup& group = reduction.context.group();
  BucketState& state = states_[reduction.index];
  if (reduction.uncompressed_work) {
    reduction.uncompressed_work->wait();
    device.divide(reduction.uncompressed_memory, group.size());
    std::int64_t offset = 0;
    for (Tensor& tensor : reduction.uncompressed) {
      device.copy(tensor, reduction.uncompressed_memory.slice(offset, tensor.shape()));
      offset += tensor.numel();
    }
  }

  // P is the sum over all ranks; once orthonormalized, the sum equals the mean.
  reduction.p_work->wait();
  Tensor none;
  for (LowRank& low : reduction.factors) {
    orthogonalize_columns(low.p);
    // Q^T = P^T M
    device.kernels().linear_backward(none, low.qt, none, low.p, low.gradient, low.qt);
  }
  group.allreduce(state.q_memory, ReduceOp::kSum, reduction.context.options("right factors"))
      ->wait();
  device.divide(state.q_memory, group.size());
  for (LowRank& low : reduction.factors) {
    // M = P Q^T
    device.kernels().linear_backward(low.gradient, none, none, low.p, low.gradient, low.qt);
  }
  if (reduction.square.defined()) {
    device.copy(reduction.buffer, reduction.square.slice(0, reduction.buffer.shape()));
  }

  if (options_.use_error_feedback) {
    Tensor negative = reduction.buffer.empty_like();
    device.scale(negative, reduction.buffer, -1);
    device.add(reduction.input, negative);
    state.error = reduction.input;
  }
  if (!options_.warm_start) state.p_memory = state.q_memory = Tensor();
  if (reduction.is_last) ++iteration_;
}

CommHook make_hook(const PowerSgdOptions& options, bool whole_bucket) {
  // Copies of a hook share this state; it lives until the last copy and the last pending reduction
  // are gone.
  auto state = std::make_shared<PowerSgd>(options);
  return [state, whole_bucket](GradBucket& bucket, const CommHookContext& context) -> BucketFuture {
    return [state, future = state->reduce(bucket, context, whole_bucket)] { return future(); };
  };
}

}  // namespace

CommHook power_sgd_hook(const PowerSgdOptions& options) {
  return make_hook(options, false);
}

CommHook batched_power_sgd_hook(const PowerSgdOptions& options) {
  return make_hook(options, true);
}

}  // namespace gradsync
