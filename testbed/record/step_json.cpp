#include "gradsync/testbed/record/step_json.hpp"

#include <nlohmann/json.hpp>

#include "gradsync/testbed/record/json_fields.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json to_json(const StepRecord& step) {
  return {
      {"epoch", step.epoch},
      {"step", step.step},
      {"loss", json_number(step.loss)},
      {"grad_norm", json_number(step.grad_norm)},
      {"learning_rate", json_number(step.learning_rate)},
      {"clip_coefficient", json_number(step.clip_coefficient)},
      {"loss_scale", json_number(step.loss_scale)},
      {"unscales", step.unscales},
      {"scale_at_clip", json_number(step.scale_at_clip)},
      {"clip_norm", json_number(step.clip_norm)},
      {"batches", step.batches},
      {"reductions", step.reductions},
      {"last_batch_reduced", step.last_batch_reduced},
      {"parameter_hash", step.parameter_hash},
      {"samples", step.samples},
      {"sample_hash", step.sample_hash},
      {"begin", json_number(step.begin.count())},
      {"data_end", json_number(step.data_end.count())},
      {"forward_end", json_number(step.forward_end.count())},
      {"backward_compute_end", json_number(step.backward_compute_end.count())},
      {"backward_end", json_number(step.backward_end.count())},
      {"clip_end", json_number(step.clip_end.count())},
      {"optimizer_end", json_number(step.optimizer_end.count())},
      {"end", json_number(step.end.count())},
      {"comm_begin", json_number(step.comm_begin.count())},
      {"comm_end", json_number(step.comm_end.count())},
      {"checksums", step.checksums},
  };
}

StepRecord step_from_json(const Json& json, const std::string& path) {
  const JsonFields fields(json, path);
  StepRecord step;
  fields.get("epoch", step.epoch);
  fields.get("step", step.step);
  fields.get("loss", step.loss);
  fields.get("grad_norm", step.grad_norm);
  fields.get("learning_rate", step.learning_rate);
  fields.get("clip_coefficient", step.clip_coefficient);
  fields.get("loss_scale", step.loss_scale);
  fields.get("unscales", step.unscales);
  fields.get("scale_at_clip", step.scale_at_clip);
  fields.get("clip_norm", step.clip_norm);
  fields.get("batches", step.batches);
  fields.get("reductions", step.reductions);
  fields.get("last_batch_reduced", step.last_batch_reduced);
  fields.get("parameter_hash", step.parameter_hash);
  fields.get("samples", step.samples);
  fields.get("sample_hash", step.sample_hash);
  fields.get("begin", step.begin);
  fields.get("data_end", step.data_end);
  fields.get("forward_end", step.forward_end);
  fields.get("backward_compute_end", step.backward_compute_end);
  fields.get("backward_end", step.backward_end);
  fields.get("clip_end", step.clip_end);
  fields.get("optimizer_end", step.optimizer_end);
  fields.get("end", step.end);
  fields.get("comm_begin", step.comm_begin);
  fields.get("comm_end", step.comm_end);
  fields.get("checksums", step.checksums);
  return step;
}

}  // namespace gradsync
