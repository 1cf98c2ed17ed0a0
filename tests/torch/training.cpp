#include "tests/torch/training.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/comm_hooks.hpp"
#include "gradsync/ddp/ddp_logging.hpp"
#include "gradsync/ddp/join.hpp"
#include "gradsync/optim/adamw.hpp"
#include "gradsync/optim/clip_grad_norm.hpp"
#include "gradsync/optim/sgd.hpp"
#include "tests/torch/fed_model.hpp"
#include "tests/torch/transformer_model.hpp"

namespace gradsync::torch_tests {
namespace {

std::unique_ptr<Model> make_model(const nlohmann::json& case_, int rank) {
  if (case_.at("model").at("kind") == "fed") return std::make_unique<FedModel>(case_, rank);
  return std::make_unique<CaseTransformer>(case_, rank);
}

DdpOptions ddp_options(const nlohmann::json& case_) {
  const auto& described = case_.at("ddp");
  DdpOptions options;
  if (!described.at("bucket_cap_mb").is_null())
    options.bucket_cap_mb = described.at("bucket_cap_mb").get<double>();
  if (!described.at("first_bucket_bytes").is_null())
    options.first_bucket_bytes = described.at("first_bucket_bytes");
  options.gradient_as_bucket_view = described.at("gradient_as_bucket_view");
  options.find_unused_parameters = described.at("find_unused_parameters");
  options.static_graph = described.at("static_graph");
  options.broadcast_buffers = described.at("broadcast_buffers");
  options.params_and_buffers_to_ignore = described.at("ignored_parameters");
  options.pytorch_version = {case_.at("pytorch_version").at(0), case_.at("pytorch_version").at(1)};
  return options;
}

CommHook comm_hook(const nlohmann::json& described) {
  PowerSgdOptions options;
  if (const auto& power_sgd = described.at("power_sgd"); !power_sgd.is_null()) {
    options.matrix_approximation_rank = power_sgd.at("matrix_approximation_rank");
    options.start_powerSGD_iter = power_sgd.at("start_powerSGD_iter");
    options.use_error_feedback = power_sgd.at("use_error_feedback");
    options.warm_start = power_sgd.at("warm_start");
    options.random_seed = power_sgd.at("random_seed");
  }
  return make_comm_hook(described.at("comm_hook"), options);
}

DistributedSampler make_sampler(const nlohmann::json& case_, int rank) {
  const auto& described = case_.at("sampler");
  SamplerOptions options;
  options.shuffle = described.at("shuffle");
  options.seed = described.at("seed");
  options.drop_last = described.at("drop_last");
  return {described.at("dataset_size").get<std::int64_t>(), case_.at("world").get<int>(), rank,
          options};
}

std::unique_ptr<Optimizer> make_optimizer(const nlohmann::json& described,
                                          const std::vector<ParameterPtr>& parameters) {
  if (described.at("kind") == "adamw") {
    AdamWOptions options;
    options.lr = described.at("lr");
    options.beta1 = described.at("betas").at(0);
    options.beta2 = described.at("betas").at(1);
    options.eps = described.at("eps");
    options.weight_decay = described.at("weight_decay");
    options.amsgrad = described.at("amsgrad");
    options.maximize = described.at("maximize");
    return std::make_unique<AdamW>(parameters, options);
  }
  SgdOptions options;
  options.lr = described.at("lr");
  options.momentum = described.at("momentum");
  options.dampening = described.at("dampening");
  options.weight_decay = described.at("weight_decay");
  options.nesterov = described.at("nesterov");
  options.maximize = described.at("maximize");
  return std::make_unique<Sgd>(parameters, options);
}

double norm_order(const std::string& text) {
  return text == "inf" ? INFINITY : std::stod(text);
}

}  // namespace

Training::Training(const nlohmann::json& described, ProcessGroup& group, ResultWriter& writer,
                   const RecordedParameters* recorded)
    : case_(described),
      group_(group),
      writer_(writer),
      recorded_(recorded),
      dtype_(parse_dtype(described.at("dtype").get<std::string>())),
      graph_(group.clock()),
      model_(make_model(described, group.rank())),
      sampler_(make_sampler(described, group.rank())) {}

Training::~Training() = default;

nlohmann::json Training::run() {
  nlohmann::json error;
  try {
    ddp_ = std::make_unique<DistributedDataParallel>(*model_, group_, ddp_options(case_));
    if (const auto& described = case_.at("ddp"); !described.at("comm_hook").is_null())
      ddp_->register_comm_hook(comm_hook(described), described.at("comm_hook"));
    optimizer_ = make_optimizer(case_.at("optimizer"), model_->parameters());
    train();
  } catch (const Error& raised) {
    if (raised.code() != ErrorCode::kMisuse) throw;
    error = raised.what();
  }
  for (const ParameterPtr& parameter : model_->parameters())
    writer_.array("final/" + parameter->name(), parameter->data, dtype_);
  for (const BufferPtr& buffer : model_->buffers())
    writer_.array("final/" + buffer->name, buffer->data, dtype_);
  return {{"error", error},
          {"steps_completed", steps_},
          {"sampler", orders_},
          {"collectives", collectives()},
          {"norms", norms_},
          {"losses", losses_},
          {"logging_data", logging_data()}};
}

void Training::train() {
  const auto& uneven = case_.at("join");
  if (uneven.is_null()) {
    run_steps(case_.at("train").at("steps"));
    return;
  }
  JoinOptions options;
  options.divide_by_initial_world_size = uneven.at("divide_by_initial_world_size");
  options.throw_on_early_termination = uneven.at("throw_on_early_termination");
  Join join(*ddp_, options);
  run_steps(uneven.at("steps").at(static_cast<std::size_t>(group_.rank())));
  join.finish();
}

void Training::run_steps(std::int64_t count) {
  while (steps_ < count) step();
}

void Training::step() {
  const auto& train = case_.at("train");
  if (recorded_ != nullptr) recorded_->set(steps_, model_->parameters());
  optimizer_->zero_grad(train.at("set_to_none").get<bool>());
  const std::int64_t micro_steps = train.at("accumulation_steps");
  for (std::int64_t micro_step = 0; micro_step < micro_steps; ++micro_step) {
    ddp_->set_position(0, steps_, micro_step);
    std::optional<NoSyncGuard> no_sync;
    if (micro_step < micro_steps - 1) no_sync.emplace(*ddp_);
    Batch batch;
    batch.sample_indices = next_samples();
    const Variable loss = ddp_->forward(*model_, batch, graph_).front();
    graph_.backward(loss);
    if (case_.at("model").at("kind") != "fed") losses_.push_back(loss.data.span<float>().front());
  }
  for (const ParameterPtr& parameter : model_->parameters()) {
    writer_.array(fmt::format("step {}/gradient of {}", steps_, parameter->name()), parameter->grad,
                  dtype_);
  }
  if (const auto& clip = train.at("clip"); !clip.is_null()) {
    norms_.push_back(clip_grad_norm(model_->parameters(), clip.at("max_norm"),
                                    norm_order(clip.at("norm_type"))));
  }
  optimizer_->step();
  ++steps_;
}

std::vector<std::int64_t> Training::next_samples() {
  if (orders_.empty() || next_sample_ == orders_.back().size()) {
    if (case_.at("sampler").at("set_epoch"))
      sampler_.set_epoch(static_cast<std::int64_t>(orders_.size()));
    orders_.push_back(sampler_.indices());
    next_sample_ = 0;
  }
  const auto& order = orders_.back();
  const std::size_t first = next_sample_;
  next_sample_ =
      std::min(order.size(), first + case_.at("sampler").at("batch_size").get<std::size_t>());
  return {order.begin() + static_cast<std::ptrdiff_t>(first),
          order.begin() + static_cast<std::ptrdiff_t>(next_sample_)};
}

nlohmann::json Training::collectives() const {
  auto list = nlohmann::json::array();
  for (const CollectiveRecord& record : group_.flight_recorder().snapshot())
    list.push_back({to_string(record.op), record.elements});
  return list;
}

nlohmann::json Training::logging_data() const {
  if (!ddp_) return nullptr;
  nlohmann::json data = ddp_->logging_data().strs_map;
  data.update(nlohmann::json(ddp_->logging_data().ints_map));
  return data;
}

}  // namespace gradsync::torch_tests
