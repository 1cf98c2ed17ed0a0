#include "tests/torch/fed_model.hpp"

#include <string>
#include <utility>

#include "tests/torch/formula.hpp"

namespace gradsync::torch_tests {
namespace {

// What the first number after the seed of a stream stands for.
constexpr std::uint64_t kParameterStream = 1;
constexpr std::uint64_t kBufferStream = 2;
constexpr std::uint64_t kGradientStream = 3;
constexpr std::uint64_t kStatisticsStream = 4;

/// sum(p * g). The gradient of the sum is 1, as the loss is a sum of such terms.
class Product final : public Node {
 public:
  Product(NodePtr parameter, Tensor gradient)
      : Node("Product", {std::move(parameter)}), gradient_(std::move(gradient)) {}

  std::vector<Tensor> backward(Tensor, BackwardPass&) override { return {gradient_.clone()}; }

 private:
  Tensor gradient_;
};

class Sum final : public Node {
 public:
  Sum(NodePtr left, NodePtr right) : Node("Sum", {std::move(left), std::move(right)}) {}

  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    return {grad_output, grad_output};
  }
};

template <typename T>
void halve_and_add(const Tensor& running, const Tensor& seen) {
  const auto values = seen.span<T>();
  auto sums = running.span<T>();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] * T{0.5} + values[i];
}

}  // namespace

FedModel::FedModel(const nlohmann::json& case_, int rank)
    : seed_(case_.at("seed")),
      rank_(static_cast<std::uint64_t>(rank)),
      dtype_(parse_dtype(case_.at("dtype").get<std::string>())) {
  const auto& model = case_.at("model");
  uses_ = model.at("uses").at(static_cast<std::size_t>(rank));
  for (const Shape shape : model.at("parameters")) {
    const std::size_t index = parameters_.size();
    parameters_.push_back(std::make_shared<Parameter>(
        "body.p" + std::to_string(index),
        uniform(stream({seed_, kParameterStream, rank_, index}), shape, dtype_)));
  }
  for (const auto& described : model.at("buffers")) {
    const std::size_t index = buffers_.size();
    const Shape shape = described.at("shape");
    Tensor value;
    if (described.at("dtype") == "int64") {
      value = Tensor::empty(shape, DType::kInt64, cpu_device());
      cpu_device().fill(value, static_cast<double>(100 * rank_ + index));
    } else {
      value = uniform(stream({seed_, kBufferStream, rank_, index}), shape, dtype_);
    }
    buffers_.push_back(std::make_shared<Buffer>(Buffer{"body.b" + std::to_string(index), value}));
  }
}

std::vector<Variable> FedModel::forward(const Batch& batch, Graph& graph) {
  update_buffers();
  const auto& uses = uses_[forwards_++ % uses_.size()];
  const std::vector<std::uint64_t> samples(batch.sample_indices.begin(),
                                           batch.sample_indices.end());
  const std::uint64_t key = stream(samples);
  const Tensor zero = Tensor::zeros({}, dtype_, cpu_device());
  Variable loss;
  for (std::size_t position = 0; position < uses.size(); ++position) {
    const std::size_t index = uses[position];
    const ParameterPtr& parameter = parameters_[index];
    const Tensor gradient = uniform(stream({seed_, kGradientStream, key, index, position}),
                                    parameter->data.shape(), dtype_);
    const Variable term =
        graph.record(zero, std::make_shared<Product>(graph.leaf(parameter).node, gradient));
    loss = position == 0 ? term : graph.record(zero, std::make_shared<Sum>(loss.node, term.node));
  }
  return {loss};
}

void FedModel::update_buffers() {
  for (std::size_t index = 0; index < buffers_.size(); ++index) {
    const Tensor& buffer = buffers_[index]->data;
    if (buffer.dtype() == DType::kInt64) {
      for (std::int64_t& count : buffer.span<std::int64_t>())
        count += static_cast<std::int64_t>(1 + rank_);
      continue;
    }
    const Tensor seen = uniform(stream({seed_, kStatisticsStream, rank_, index, forwards_}),
                                buffer.shape(), dtype_);
    if (dtype_ == DType::kFloat64) {
      halve_and_add<double>(buffer, seen);
    } else {
      halve_and_add<float>(buffer, seen);
    }
  }
}

}  // namespace gradsync::torch_tests
