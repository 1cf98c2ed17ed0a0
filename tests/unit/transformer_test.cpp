#include "gradsync/models/transformer.hpp"

#include <cmath>
#include <cstring>

#include "gradsync/core/error.hpp"
#include "gradsync/core/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_clock.hpp"

using namespace gradsync;
using gradsync::test::Approx;
using gradsync::test::contains;
using gradsync::test::FakeClock;

namespace {

TransformerOptions small_options() {
  TransformerOptions options;
  options.vocab_size = 50;
  options.d_model = 16;
  options.nhead = 2;
  options.dim_feedforward = 32;
  return options;
}

Batch random_batch(std::int64_t batch, std::int64_t seq, std::int64_t vocab_size) {
  const CounterRandom random(3, 0);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(2 * batch * seq));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int64_t>(random.bits(i) % static_cast<std::uint64_t>(vocab_size));
  }
  const Tensor all = Tensor::from<std::int64_t>(ids, {2, batch, seq});
  Batch result;
  result.tensors = {{"tokens", all.slice(0, {batch, seq})},
                    {"targets", all.slice(batch * seq, {batch, seq})}};
  return result;
}

struct Moments {
  double mean = 0, deviation = 0, least = 0, most = 0;
};

Moments moments_of(const Tensor& tensor) {
  Moments m;
  double squares = 0;
  for (const float x : tensor.span<float>()) {
    m.mean += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
    m.least = std::min(m.least, static_cast<double>(x));
    m.most = std::max(m.most, static_cast<double>(x));
  }
  const auto count = static_cast<double>(tensor.numel());
  m.mean /= count;
  m.deviation = std::sqrt(squares / count - m.mean * m.mean);
  return m;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.nbytes())) == 0;
}

}  // namespace

TEST_CASE("initial weights follow PyTorch's rules") {
  const TransformerModel model({}, 5, cpu_device());
  const auto check_uniform = [](const Tensor& tensor, double bound) {
    const Moments m = moments_of(tensor);
    const double standard_error = bound / std::sqrt(3.0 * static_cast<double>(tensor.numel()));
    CHECK(std::fabs(m.mean) < 5 * standard_error);
    CHECK(m.deviation ==
          Approx(bound / std::sqrt(3)).epsilon(5 / std::sqrt(static_cast<double>(tensor.numel()))));
    CHECK(m.least >= -bound);
    CHECK(m.most <= bound);
  };
  for (const auto& parameter : model.parameters()) {
    const std::string& name = parameter->name();
    const Tensor& data = parameter->data;
    CAPTURE(name);
    if (name == "embed.weight") {
      const Moments m = moments_of(data);
      CHECK(std::fabs(m.mean) < 5 / std::sqrt(256'000.0));
      CHECK(m.deviation == Approx(1).epsilon(0.01));
    } else if (name.find("norm") != std::string::npos) {
      const Moments m = moments_of(data);
      CHECK(m.mean == (name.ends_with("weight") ? 1.0 : 0.0));
      CHECK(m.deviation == 0);
    } else if (name.ends_with("in_proj_bias") || name.ends_with("out_proj.bias")) {
      CHECK(moments_of(data).deviation == 0);
    } else if (name.ends_with("in_proj_weight")) {
      check_uniform(data, std::sqrt(6.0 / (256 + 768)));
    } else {
      check_uniform(data, name.find("ff.2") != std::string::npos ? 1 / std::sqrt(512.0) : 1.0 / 16);
    }
  }
}

TEST_CASE("initial weights are decided by the seed and nothing else") {
  const TransformerModel a(small_options(), 5, cpu_device()), b(small_options(), 5, cpu_device()),
      other(small_options(), 6, cpu_device());
  for (std::size_t i = 0; i < a.parameters().size(); ++i) {
    CHECK(same_bits(a.parameters()[i]->data, b.parameters()[i]->data));
  }
  CHECK_FALSE(same_bits(a.parameters()[0]->data, other.parameters()[0]->data));
  // Recorded once: the same bits on every machine.
  CHECK(a.parameters()[0]->data.span<float>()[0] == 0x1.b91092p-2f);
  CHECK(a.parameters()[1]->data.span<float>()[0] == 0x1.6b855ap-4f);
}

TEST_CASE("a step gives the same bits each time, wherever its memory lies") {
  const Batch batch = random_batch(4, 8, 50);
  const auto step = [&] {
    TransformerModel model(small_options(), 5, cpu_device());
    FakeClock clock;
    Graph graph(clock);
    const auto outputs = model.forward(batch, graph);
    graph.backward(outputs[0]);
    std::vector<Tensor> results{outputs[0].data, outputs[1].data};
    for (const auto& parameter : model.parameters()) results.push_back(parameter->grad);
    return results;
  };
  const auto first = step();
  std::vector<Tensor> in_the_way;
  for (std::int64_t i = 1; i < 20; ++i) {
    in_the_way.push_back(Tensor::zeros({i * 1000}, DType::kUInt8, cpu_device()));
    const auto again = step();
    for (std::size_t j = 0; j < first.size(); ++j) REQUIRE(same_bits(first[j], again[j]));
  }
}

TEST_CASE("outputs are the loss and the logits, also on the meta device and at equal cost") {
  const auto run = [](Device& device, Batch batch) {
    TransformerModel model(small_options(), 5, device);
    FakeClock clock;
    Graph graph(clock);
    const auto outputs = model.forward(batch, graph);
    REQUIRE(outputs.size() == 2);
    CHECK(outputs[0].data.shape() == Shape{});
    CHECK(outputs[1].data.shape() == Shape{4, 8, 50});
    graph.backward(outputs[0]);
    for (const auto& parameter : model.parameters()) {
      CHECK(parameter->grad.shape() == parameter->data.shape());
    }
    return clock.flops();
  };
  Batch meta;
  const Tensor ids = Tensor::empty({4, 8}, DType::kInt64, meta_device());
  meta.tensors = {{"tokens", ids}, {"targets", ids}};
  CHECK(run(cpu_device(), random_batch(4, 8, 50)) == run(meta_device(), meta));
}

TEST_CASE("a transformer of a shape that cannot be is refused") {
  auto options = small_options();
  options.nhead = 3;
  REQUIRE_THROWS_WITH(TransformerModel(options, 0, meta_device()), contains("multiple of nhead 3"));
  options.nhead = 0;
  REQUIRE_THROWS_WITH(TransformerModel(options, 0, meta_device()),
                      contains("nhead must be positive"));
}
