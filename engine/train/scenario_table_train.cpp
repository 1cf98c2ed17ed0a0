// The rows of "optimizer", "train" and "ddp": the training loop.

#include "engine/train/scenario_codec.hpp"

namespace gradsync::scenario_table {

Section optimizer_section() {
  const std::vector<std::string> adamw{"adamw"};
  const std::vector<std::string> sgd{"sgd"};
  return {
      .name = "optimizer",
      .description = "The optimizer, with PyTorch's names and defaults.",
      .kinds =
          {
              {"adamw", "`torch.optim.AdamW`.",
               [](Scenario& s) { s.optimizer.kind = OptimizerSpec::Kind::kAdamW; },
               [](const Scenario& s) { return s.optimizer.kind == OptimizerSpec::Kind::kAdamW; }},
              {"sgd", "`torch.optim.SGD`.",
               [](Scenario& s) {
                 s.optimizer.kind = OptimizerSpec::Kind::kSgd;
                 s.optimizer.weight_decay = 0;
               },
               [](const Scenario& s) { return s.optimizer.kind == OptimizerSpec::Kind::kSgd; }},
          },
      .fields =
          {
              field("lr", SCENARIO_MEMBER(optimizer.lr), at_least(0), "Learning rate.",
                    {.other_names = {"learning_rate", "learningrate"}}),
              computed_field<std::array<double, 2>>(
                  "betas",
                  [](const Scenario& s) {
                    return std::array<double, 2>{s.optimizer.beta1, s.optimizer.beta2};
                  },
                  [](Scenario& s, const std::array<double, 2>& betas) {
                    s.optimizer.beta1 = betas[0];
                    s.optimizer.beta2 = betas[1];
                  },
                  from_to_below(0, 1), "Decay rates of the two moments.",
                  {.kinds = adamw, .other_names = {"beta1", "beta2"}}),
              field("eps", SCENARIO_MEMBER(optimizer.eps), at_least(0), "Added to the denominator.",
                    {.kinds = adamw, .other_names = {"epsilon"}}),
              field("momentum", SCENARIO_MEMBER(optimizer.momentum), at_least(0), "Momentum.",
                    {.kinds = sgd}),
              field("dampening", SCENARIO_MEMBER(optimizer.dampening), any(),
                    "Dampening of the momentum.", {.kinds = sgd}),
              field("weight_decay", SCENARIO_MEMBER(optimizer.weight_decay), at_least(0),
                    "Weight decay: decoupled in AdamW, an L2 penalty in SGD.",
                    {.other_names = {"wd", "decay"}}),
              field("amsgrad", SCENARIO_MEMBER(optimizer.amsgrad), any(),
                    "The AMSGrad variant: keep the largest second moment.", {.kinds = adamw}),
              field("nesterov", SCENARIO_MEMBER(optimizer.nesterov), any(),
                    "Nesterov momentum; needs `momentum` > 0 and `dampening` 0.", {.kinds = sgd}),
              field("maximize", SCENARIO_MEMBER(optimizer.maximize), any(),
                    "Ascend in place of descend."),
          },
  };
}

Section train_section() {
  return {
      .name = "train",
      .description = "The loop.",
      .fields =
          {
              field("batch_size", SCENARIO_MEMBER(train.batch_size), at_least(1),
                    "Samples that each rank takes in a step. The last batch of an epoch may be "
                    "smaller.",
                    {.other_names = {"micro_batch_size", "per_rank_batch_size"}}),
              field("epochs", SCENARIO_MEMBER(train.epochs), at_least(1),
                    "Passes over the data set.", {.other_names = {"num_epochs"}}),
              field("max_steps", SCENARIO_MEMBER(train.max_steps), at_least(1),
                    "End after so many optimizer steps, counted over all epochs; null: no limit.",
                    {.other_names = {"steps", "num_steps", "iterations"}}),
              field(
                  "clip_grad_norm", SCENARIO_MEMBER(train.clip_grad_norm), above(0),
                  "Largest 2-norm over all gradients, as in `clip_grad_norm_`; null: no clipping.",
                  {.other_names = {"max_norm", "max_grad_norm", "clip", "grad_clip"}}),
              field("hash_every", SCENARIO_MEMBER(train.hash_every), at_least(0),
                    "Take the hash of all parameters every so many steps; 0: after the last step "
                    "only."),
              field("check_hashes", SCENARIO_MEMBER(train.check_hashes), any(),
                    "Compare the hashes of all ranks whenever they are taken, and end the run with "
                    "`desync` when they differ."),
          },
  };
}

Section ddp_section() {
  return {
      .name = "ddp",
      .description = "`torch.nn.parallel.DistributedDataParallel`, with its names and defaults.",
      .fields =
          {
              field("bucket_cap_mb", SCENARIO_MEMBER(ddp.bucket_cap_mb), above(0),
                    "Size at which a bucket is full, in MiB. Where it is given it holds for the "
                    "first "
                    "bucket too, as in PyTorch 2.",
                    {.examples = {25, 50, 0.5},
                     .default_text = "25, and 1 for the first bucket",
                     .other_names = {"bucket_cap", "bucket_size", "bucket_size_mb"}}),
              field("gradient_as_bucket_view", SCENARIO_MEMBER(ddp.gradient_as_bucket_view), any(),
                    "Gradients are views into the buckets, which saves a copy each way."),
          },
  };
}

}  // namespace gradsync::scenario_table
