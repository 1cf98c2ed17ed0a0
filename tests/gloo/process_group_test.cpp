#include "gradsync/backends/gloo/gloo_process_group.hpp"

#include <cstring>
#include <string>

#include "tests/gloo/gloo_world.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded.hpp"

using namespace gradsync;
using test::gloo_world;

namespace {

GlooProcessGroup::Options with_threads(int threads) {
  GlooProcessGroup::Options options;
  options.timeout = Seconds(60);
  options.threads = threads;
  return options;
}

std::vector<std::byte> from_hex(const nlohmann::json& words) {
  std::vector<std::byte> bytes;
  for (const auto& word : words) {
    const auto bits = static_cast<std::uint32_t>(std::stoul(word.get<std::string>(), nullptr, 16));
    const auto* begin = reinterpret_cast<const std::byte*>(&bits);
    bytes.insert(bytes.end(), begin, begin + sizeof(bits));
  }
  return bytes;
}

}  // namespace

TEST_CASE("gloo: the process group keeps its contract") {
  test::check_process_group_conformance(gloo_world(with_threads(1)));
}

TEST_CASE("gloo: the process group keeps its contract with two communication threads") {
  test::check_process_group_conformance(gloo_world(with_threads(2)));
}

TEST_CASE("gloo: collectives that differ between ranks are desyncs") {
  test::check_mismatches_are_desyncs(gloo_world(with_threads(1)));
}

TEST_CASE("gloo: collectives that differ are desyncs with two communication threads") {
  test::check_mismatches_are_desyncs(gloo_world(with_threads(2)));
}

TEST_CASE("gloo: all-reduce gives the bits that PyTorch's Gloo gave") {
  const auto vectors = test::load_recorded("pytorch/gloo_allreduce.json");
  CHECK(vectors.at("cases").size() == 48);
  for (const auto& recorded : vectors.at("cases")) {
    const auto size = recorded.at("world").get<int>();
    const auto elements = recorded.at("numel").get<std::int64_t>();
    INFO("world " << size << ", " << elements << " elements");
    // Where the recording is too large to keep, it says that the ring's model gave its bits, and
    // with which segments: then our values are held against the same model.
    const bool has_bits = recorded.contains("inputs_bits");
    std::vector<std::vector<std::byte>> inputs;
    for (int rank = 0; rank < size; ++rank) {
      inputs.push_back(has_bits
                           ? from_hex(recorded.at("inputs_bits").at(static_cast<std::size_t>(rank)))
                           : test::test_values(DType::kFloat32, elements, rank));
    }
    const auto model = test::reference_ring_allreduce(inputs, DType::kFloat32, ReduceOp::kSum);
    const auto segments = test::reference_ring_segments(inputs[0].size(), sizeof(float),
                                                        static_cast<std::size_t>(size));
    CHECK(recorded.at("ring_model_bitwise_equal").get<bool>());
    CHECK(segments.count == recorded.at("num_segments").get<std::size_t>());
    CHECK(segments.per_rank == recorded.at("segments_per_rank").get<std::size_t>());
    CHECK(segments.bytes == recorded.at("segment_bytes").get<std::size_t>());
    if (has_bits) CHECK((model == from_hex(recorded.at("output_bits"))));

    std::vector<std::vector<std::byte>> outputs(static_cast<std::size_t>(size));
    gloo_world(with_threads(1))(size, [&](ProcessGroup& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      Tensor tensor = Tensor::empty({elements}, DType::kFloat32, cpu_device());
      std::memcpy(tensor.data(), inputs[rank].data(), inputs[rank].size());
      group.allreduce(tensor, ReduceOp::kSum, {})->wait();
      outputs[rank].assign(tensor.data(), tensor.data() + tensor.nbytes());
    });
    for (const auto& output : outputs) CHECK((output == model));
  }
}

TEST_CASE("gloo: options that make no sense are refused") {
  GlooProcessGroup::Options options;
  options.timeout = Seconds(0);
  CHECK_THROWS_AS(gloo_world(options)(1, [](ProcessGroup&) {}), Error);
  options.timeout = Seconds(1);
  options.threads = 0;
  CHECK_THROWS_AS(gloo_world(options)(1, [](ProcessGroup&) {}), Error);
  options.threads = 1;
  options.interface = "no such interface";
  CHECK_THROWS_AS(gloo_world(options)(1, [](ProcessGroup&) {}), Error);
}
