// The sum at every hop of an all-reduce: bytes per second, by dtype and size.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "gradsync/comm/reduce_functions.hpp"

namespace {

using namespace gradsync;

void sum(benchmark::State& state, DType dtype) {
  const auto elements = static_cast<std::size_t>(state.range(0));
  const std::size_t bytes = elements * element_size(dtype);
  std::vector<std::uint64_t> a(bytes / 8 + 1), b(bytes / 8 + 1);
  const ReduceFunction reduce = reduce_function(ReduceOp::kSum, dtype);
  for (auto _ : state) {
    reduce(a.data(), a.data(), b.data(), elements);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

BENCHMARK_CAPTURE(sum, float32, DType::kFloat32)->RangeMultiplier(16)->Range(1 << 8, 1 << 24);
BENCHMARK_CAPTURE(sum, bfloat16, DType::kBFloat16)->RangeMultiplier(16)->Range(1 << 8, 1 << 24);
BENCHMARK_CAPTURE(sum, float16, DType::kFloat16)->RangeMultiplier(16)->Range(1 << 8, 1 << 24);

}  // namespace
