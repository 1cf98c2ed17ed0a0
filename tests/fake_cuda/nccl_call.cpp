#include "tests/fake_cuda/nccl_call.hpp"

#include <algorithm>
#include <cstring>

#include "gradsync/comm/reduce_functions.hpp"
#include "gradsync/tensor/element.hpp"

namespace gradsync::test {
namespace {

void scale_by_inverse(std::byte* data, std::size_t count, DType dtype, std::size_t ranks) {
  with_floating_type(dtype, "average", [&](auto tag) {
    using T = decltype(tag);
    using Math = MathType<T>;
    const Math factor = static_cast<Math>(static_cast<T>(Math{1} / static_cast<Math>(ranks)));
    T* const elements = reinterpret_cast<T*>(data);
    for (std::size_t i = 0; i < count; ++i) {
      elements[i] = static_cast<T>(static_cast<Math>(elements[i]) * factor);
    }
  });
}

/// The sum of all ranks' elements `begin` to `end`, which starts at rank `first` and goes around.
class RingSum {
 public:
  RingSum(const std::vector<const std::byte*>& inputs, std::size_t count, DType dtype,
          NcclReduceOp op)
      : size_(element_size(dtype)),
        reduce_(reduce_function(op == NcclReduceOp::kMax   ? ReduceOp::kMax
                                : op == NcclReduceOp::kMin ? ReduceOp::kMin
                                                           : ReduceOp::kSum,
                                dtype)) {
    for (const std::byte* input : inputs) {
      values_.emplace_back(input, input + count * size_);
      if (op == NcclReduceOp::kAverage) {
        scale_by_inverse(values_.back().data(), count, dtype, inputs.size());
      }
    }
  }

  void write(std::byte* sum, std::size_t begin, std::size_t end, std::size_t first) const {
    if (begin == end) return;
    const std::size_t ranks = values_.size();
    std::memcpy(sum, values_[first % ranks].data() + begin * size_, (end - begin) * size_);
    for (std::size_t hop = 1; hop < ranks; ++hop) {
      reduce_(sum, values_[(first + hop) % ranks].data() + begin * size_, sum, end - begin);
    }
  }

 private:
  std::size_t size_;
  ReduceFunction reduce_;
  std::vector<std::vector<std::byte>> values_;
};

}  // namespace

std::vector<std::byte> nccl_ring_allreduce(const std::vector<const std::byte*>& inputs,
                                           std::size_t count, DType dtype, NcclReduceOp op) {
  const std::size_t ranks = inputs.size(), size = element_size(dtype);
  const RingSum ring(inputs, count, dtype, op);
  std::vector<std::byte> result(count * size);
  const std::size_t align = std::max<std::size_t>(1, 16 / size);
  const std::size_t chunk = ((count + ranks - 1) / ranks + align - 1) / align * align;
  for (std::size_t c = 0; c < ranks; ++c) {
    const std::size_t begin = std::min(count, c * chunk), end = std::min(count, begin + chunk);
    ring.write(result.data() + begin * size, begin, end, c + 1);
  }
  return result;
}

void NcclCall::finish(const std::vector<const std::byte*>& inputs, int rank) const {
  auto* const to = static_cast<std::byte*>(receive);
  const auto self = static_cast<std::size_t>(rank), of_root = static_cast<std::size_t>(root);
  const std::size_t bytes = count * element_size(dtype);
  switch (kind) {
    case Kind::kAllReduce: {
      const auto sum = nccl_ring_allreduce(inputs, count, dtype, op);
      std::copy(sum.begin(), sum.end(), to);
      return;
    }
    case Kind::kBroadcast:
      std::memcpy(to, inputs[of_root], bytes);
      return;
    case Kind::kAllGather:
      for (std::size_t r = 0; r < inputs.size(); ++r) std::memcpy(to + r * bytes, inputs[r], bytes);
      return;
    case Kind::kReduce:
      if (rank == root) RingSum(inputs, count, dtype, op).write(to, 0, count, of_root + 1);
      return;
    case Kind::kReduceScatter: {
      const RingSum ring(inputs, inputs.size() * count, dtype, op);
      ring.write(to, self * count, (self + 1) * count, self + 1);
      return;
    }
  }
}

}  // namespace gradsync::test
