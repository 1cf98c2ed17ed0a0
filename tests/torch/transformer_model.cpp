#include "tests/torch/transformer_model.hpp"

#include <cmath>
#include <string>

#include "tests/torch/formula.hpp"

namespace gradsync::torch_tests {
namespace {

// What the first number after the seed of a stream stands for.
constexpr std::uint64_t kParameterStream = 1;
constexpr std::uint64_t kInputStream = 5;
constexpr std::uint64_t kTargetStream = 6;

TransformerOptions sizes(const nlohmann::json& model) {
  TransformerOptions options;
  options.vocab_size = model.at("vocab_size");
  options.d_model = model.at("d_model");
  options.nhead = model.at("nhead");
  options.num_layers = model.at("num_layers");
  options.dim_feedforward = model.at("dim_feedforward");
  options.norm_first = model.at("norm_first");
  return options;
}

void set_initial_value(Parameter& parameter, std::uint64_t stream_number) {
  const std::string& name = parameter.name();
  const auto values = parameter.data.span<float>();
  if (name.find("norm") != std::string::npos && name.ends_with("weight")) {
    std::fill(values.begin(), values.end(), 1.0F);
    return;
  }
  const double columns = static_cast<double>(parameter.data.shape().back());
  const auto scale = static_cast<float>(name.ends_with("bias") ? 0.1 : std::sqrt(1.0 / columns));
  const Tensor drawn = uniform(stream_number, parameter.data.shape(), DType::kFloat32);
  const auto source = drawn.span<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = source[i] * scale;
}

}  // namespace

CaseTransformer::CaseTransformer(const nlohmann::json& described, int rank)
    : seed_(described.at("seed")),
      vocab_size_(described.at("model").at("vocab_size")),
      seq_len_(described.at("model").at("seq_len")),
      model_(sizes(described.at("model")), seed_, cpu_device()) {
  std::uint64_t index = 0;
  for (const ParameterPtr& parameter : model_.parameters()) {
    set_initial_value(*parameter,
                      stream({seed_, kParameterStream, static_cast<std::uint64_t>(rank), index++}));
  }
}

std::vector<Variable> CaseTransformer::forward(const Batch& batch, Graph& graph) {
  Batch tokens_of_batch = batch;
  tokens_of_batch.tensors = {{"tokens", tokens(kInputStream, batch.sample_indices)},
                             {"targets", tokens(kTargetStream, batch.sample_indices)}};
  return model_.forward(tokens_of_batch, graph);
}

Tensor CaseTransformer::tokens(std::uint64_t stream_kind,
                               const std::vector<std::int64_t>& samples) const {
  Tensor result = Tensor::empty({static_cast<std::int64_t>(samples.size()), seq_len_},
                                DType::kInt64, cpu_device());
  auto token = result.span<std::int64_t>().begin();
  const auto vocabulary = static_cast<std::uint64_t>(vocab_size_);
  for (const std::int64_t sample : samples) {
    for (std::int64_t position = 0; position < seq_len_; ++position) {
      const std::uint64_t drawn = stream({seed_, stream_kind, static_cast<std::uint64_t>(sample),
                                          static_cast<std::uint64_t>(position)});
      *token++ = static_cast<std::int64_t>(drawn % vocabulary);
    }
  }
  return result;
}

}  // namespace gradsync::torch_tests
