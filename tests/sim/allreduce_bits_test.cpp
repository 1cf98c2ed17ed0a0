// The bits of a simulated all-reduce are those of Gloo's ring.

#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "gradsync/comm/ring_plan.hpp"
#include "gradsync/core/float16.hpp"
#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

/// Every rank's tensor after an all-reduce of `inputs`.
std::vector<std::vector<std::byte>> allreduced(const std::vector<std::vector<std::byte>>& inputs,
                                               DType dtype, ReduceOp op, Fidelity fidelity) {
  const auto ranks = static_cast<int>(inputs.size());
  std::vector<std::vector<std::byte>> outputs(inputs.size());
  SimulationOptions options = with_fidelity(fidelity);
  options.device = &cpu_device();
  const RunOutcome outcome = simulate(
      one_switch(ranks), ranks, options, [&](const RankRuntime& runtime, RankReport& report) {
        const auto rank = static_cast<std::size_t>(report.rank);
        const auto elements = static_cast<std::int64_t>(inputs[rank].size() / element_size(dtype));
        Tensor tensor = Tensor::empty({elements}, dtype, *runtime.device);
        std::memcpy(tensor.data(), inputs[rank].data(), inputs[rank].size());
        runtime.process_group->allreduce(tensor, op, {})->wait();
        outputs[rank].assign(tensor.data(), tensor.data() + tensor.nbytes());
      });
  for (const RankReport& report : outcome.reports) CHECK(report.error.empty());
  return outputs;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto* begin = reinterpret_cast<const std::byte*>(values.data());
  return {begin, begin + values.size() * sizeof(T)};
}

/// Values with all exponents that gradients have, from a counter.
float value(std::size_t rank, std::size_t i) {
  std::uint64_t x = (rank + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 31)) * 0x94d049bb133111ebu;
  x ^= x >> 29;
  const auto mantissa = static_cast<float>(static_cast<std::int32_t>(x & 0xffffff) - 0x800000);
  return std::ldexp(mantissa, -24 - static_cast<int>((x >> 40) % 12));
}

/// Element i's sum from the definition: the chunk it falls in decides whose value comes first.
template <typename T>
T ring_sum(const std::vector<std::vector<T>>& inputs, std::size_t i, std::size_t chunk_elements,
           const std::function<T(T, T)>& add) {
  const std::size_t ranks = inputs.size();
  const std::size_t chunk = i / chunk_elements;
  T sum = inputs[(chunk + ranks - 1) % ranks][i];
  for (std::size_t hop = 2; hop <= ranks; ++hop) {
    sum = add(inputs[(chunk + ranks - hop) % ranks][i], sum);
  }
  return sum;
}

}  // namespace

TEST_CASE("the ring's cuts and sums are those recorded from Gloo, 48 cases") {
  const nlohmann::json recorded = load_recorded("pytorch/gloo_allreduce.json");
  REQUIRE(recorded["cases"].size() == 48);
  for (const auto& c : recorded["cases"]) {
    const auto ranks = c["world"].get<std::size_t>();
    const auto elements = c["numel"].get<std::size_t>();
    CAPTURE(ranks, elements);
    const RingPlan plan(static_cast<Bytes>(4 * elements), 4, static_cast<int>(ranks));
    CHECK(plan.segments() == c["num_segments"].get<std::int64_t>());
    CHECK(plan.segments_per_rank == c["segments_per_rank"].get<std::int64_t>());
    CHECK(plan.segment_bytes == c["segment_bytes"].get<std::int64_t>());

    // Long cases have no values in the file; there the order of the sum is checked on our own.
    std::vector<std::vector<float>> inputs(ranks);
    std::vector<float> expected(elements);
    if (c.contains("inputs_bits")) {
      for (std::size_t r = 0; r < ranks; ++r) inputs[r] = floats_from_bits(c["inputs_bits"][r]);
      expected = floats_from_bits(c["output_bits"]);
    } else {
      const auto chunk = static_cast<std::size_t>(plan.segments_per_rank * plan.segment_bytes) / 4;
      for (std::size_t r = 0; r < ranks; ++r) {
        for (std::size_t i = 0; i < elements; ++i) inputs[r].push_back(value(r, i));
      }
      for (std::size_t i = 0; i < elements; ++i) {
        expected[i] = ring_sum<float>(inputs, i, chunk, std::plus<>());
      }
    }
    std::vector<std::vector<std::byte>> bytes;
    for (const auto& input : inputs) bytes.push_back(bytes_of(input));
    for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
      const auto outputs = allreduced(bytes, DType::kFloat32, ReduceOp::kSum, fidelity);
      for (const auto& output : outputs) REQUIRE(output == bytes_of(expected));
    }
  }
}

TEST_CASE("bfloat16 and float16 are rounded at every hop of the ring") {
  constexpr std::size_t kRanks = 5;
  constexpr std::size_t kElements = 1003;
  struct Kind {
    DType dtype;
    std::uint16_t (*narrow)(float);
    float (*widen)(std::uint16_t);
  };
  const Kind kinds[] = {{DType::kBFloat16, float_to_bfloat16, bfloat16_to_float},
                        {DType::kFloat16, float_to_float16, float16_to_float}};
  for (const Kind& kind : kinds) {
    std::vector<std::vector<std::uint16_t>> inputs(kRanks);
    std::vector<std::vector<std::byte>> bytes;
    for (std::size_t r = 0; r < kRanks; ++r) {
      for (std::size_t i = 0; i < kElements; ++i) inputs[r].push_back(kind.narrow(value(r, i)));
      bytes.push_back(bytes_of(inputs[r]));
    }
    const RingPlan plan(2 * kElements, 2, kRanks);
    const auto chunk = static_cast<std::size_t>(plan.segments_per_rank * plan.segment_bytes) / 2;
    std::vector<std::uint16_t> expected;
    for (std::size_t i = 0; i < kElements; ++i) {
      expected.push_back(
          ring_sum<std::uint16_t>(inputs, i, chunk, [&](std::uint16_t a, std::uint16_t b) {
            return kind.narrow(kind.widen(a) + kind.widen(b));
          }));
    }
    for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
      const auto outputs = allreduced(bytes, kind.dtype, ReduceOp::kSum, fidelity);
      for (const auto& output : outputs) CHECK(output == bytes_of(expected));
    }
  }
}

TEST_CASE("both fidelities give the same bits for every dtype and reduction") {
  constexpr int kRanks = 7;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kFloat16, DType::kBFloat16}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
      for (const std::size_t elements : {std::size_t{1}, std::size_t{5}, std::size_t{12'345}}) {
        std::vector<std::vector<std::byte>> inputs(kRanks);
        for (std::size_t r = 0; r < kRanks; ++r) {
          for (std::size_t i = 0; i < elements * element_size(dtype); ++i) {
            inputs[r].push_back(static_cast<std::byte>(i * 37 + r * 101 + i / 251));
          }
        }
        const auto by_message = allreduced(inputs, dtype, op, Fidelity::kMessage);
        const auto by_flow = allreduced(inputs, dtype, op, Fidelity::kFlow);
        CAPTURE(std::string(to_string(dtype)), to_string(op), elements);
        CHECK(by_message == by_flow);
        for (const auto& output : by_message) CHECK(output == by_message.front());
      }
    }
  }
}
