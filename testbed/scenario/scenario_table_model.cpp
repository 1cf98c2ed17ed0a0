// The rows of "model", "data" and "sampler": what is trained, on what.

#include "gradsync/testbed/scenario/scenario_codec.hpp"

namespace gradsync::scenario_table {

template <>
struct EnumNames<TransformerSpec::Norm> {
  static constexpr std::array<std::pair<const char*, TransformerSpec::Norm>, 2> kNames{
      {{"layer_norm", TransformerSpec::Norm::kLayerNorm},
       {"batch_norm", TransformerSpec::Norm::kBatchNorm}}};
};

template <>
struct EnumNames<DType> {
  static constexpr std::array<std::pair<const char*, DType>, 4> kNames{
      {{"float32", DType::kFloat32},
       {"float64", DType::kFloat64},
       {"float16", DType::kFloat16},
       {"bfloat16", DType::kBFloat16}}};
};

namespace {

template <class Spec>
std::optional<OpenKinds::Spec> selected(const Spec& spec) {
  if (spec.kind != Spec::Kind::kRegistered) return std::nullopt;
  return OpenKinds::Spec{spec.registered.kind, spec.registered.options};
}

}  // namespace

Section model_section() {
  const std::vector<std::string> transformer{"transformer"};
  const std::vector<std::string> replay{"replay"};
  return {
      .name = "model",
      .description = "What is trained.",
      .kinds =
          {
              {"transformer",
               "A transformer encoder over tokens (embedding, self-attention blocks, head), "
               "computed for real in every world. Its defaults have 1,567,208 parameters in 27 "
               "tensors.",
               [](Scenario& s) { s.model.kind = ModelSpec::Kind::kTransformer; },
               [](const Scenario& s) { return s.model.kind == ModelSpec::Kind::kTransformer; }},
              {"replay",
               "A measured profile of any model: parameters, times, and the order in which the "
               "gradients become ready. Nothing is computed; the time passes, and the gradients "
               "are synthetic.",
               [](Scenario& s) { s.model.kind = ModelSpec::Kind::kReplay; },
               [](const Scenario& s) { return s.model.kind == ModelSpec::Kind::kReplay; }},
          },
      .open_kinds = OpenKinds{
          [](const Registry& registry) { return registry.models(); },
          [](const Scenario& s) { return selected(s.model); },
          [](const Registry& registry, const std::string& name, std::string options, Scenario& s) {
            s.model.kind = ModelSpec::Kind::kRegistered;
            s.model.registered = {registry.find_model(name), std::move(options)};
          }},
      .fields =
          {
              field("vocab_size", SCENARIO_MEMBER(model.transformer.vocab_size), at_least(1),
                    "Number of token ids: rows of the embedding, outputs of the head.",
                    {.kinds = transformer, .other_names = {"vocab", "num_embeddings"}}),
              field("d_model", SCENARIO_MEMBER(model.transformer.d_model), at_least(1),
                    "Width: features of a token.",
                    {.kinds = transformer, .other_names = {"hidden_size", "embed_dim"}}),
              field("nhead", SCENARIO_MEMBER(model.transformer.nhead), at_least(1),
                    "Heads of the self-attention; has to divide `d_model`.",
                    {.kinds = transformer, .other_names = {"num_heads", "n_heads"}}),
              field("num_layers", SCENARIO_MEMBER(model.transformer.num_layers), at_least(1),
                    "Number of encoder layers.",
                    {.kinds = transformer, .other_names = {"layers", "n_layers"}}),
              field("dim_feedforward", SCENARIO_MEMBER(model.transformer.dim_feedforward),
                    at_least(1), "Width inside the feed-forward blocks.", {.kinds = transformer}),
              field("norm_first", SCENARIO_MEMBER(model.transformer.norm_first), any(),
                    "Norms before attention and feed-forward (pre-norm), not after.",
                    {.kinds = transformer}),
              field("norm", SCENARIO_MEMBER(model.transformer.norm), any(),
                    "`batch_norm` has buffers, which `ddp.broadcast_buffers` sends from rank 0 to "
                    "all before each forward, and which drift apart without it.",
                    {.kinds = transformer}),
              field("dtype", SCENARIO_MEMBER(model.transformer.dtype), any(),
                    "Of parameters, gradients and so of buckets. Operations on 16-bit values "
                    "compute in float32 and round once.",
                    {.kinds = transformer, .other_names = {"torch_dtype", "precision"}}),
              field(
                  "profile", SCENARIO_MEMBER(model.replay.profile), existing_file(),
                  "The profile, relative to the scenario file.",
                  {.kinds = replay, .examples = {"models/bert-large-a100.json"}, .required = true}),
              field("compute_scale", SCENARIO_MEMBER(model.replay.compute_scale), above(0),
                    "Multiplies every time of the profile: 0.5 is a GPU twice as fast.",
                    {.kinds = replay}),
              field("payload", SCENARIO_MEMBER(model.replay.payload), any(),
                    "In `sim`, give parameters and gradients bytes, with values that are known "
                    "exactly, and so a parameter hash. On real backends they always have them.",
                    {.kinds = replay}),
          },
  };
}

Section data_section() {
  const std::vector<std::string> tokens{"synthetic_tokens"};
  const std::vector<std::string> text{"text"};
  return {
      .name = "data",
      .description = "The data set.",
      .kinds =
          {
              {"synthetic_tokens",
               "Sequences of random token ids; the targets are the inputs shifted by one.",
               [](Scenario& s) { s.data.kind = DataSpec::Kind::kSyntheticTokens; },
               [](const Scenario& s) { return s.data.kind == DataSpec::Kind::kSyntheticTokens; }},
              {"text",
               "The bytes of a file as tokens (vocabulary 256), cut into sequences; the targets "
               "are "
               "the inputs shifted by one byte.",
               [](Scenario& s) {
                 s.data.kind = DataSpec::Kind::kText;
                 s.data.vocab_size = 256;
               },
               [](const Scenario& s) { return s.data.kind == DataSpec::Kind::kText; }},
              {"indices", "Samples without content, for a replayed model.",
               [](Scenario& s) { s.data.kind = DataSpec::Kind::kIndices; },
               [](const Scenario& s) { return s.data.kind == DataSpec::Kind::kIndices; }},
          },
      .open_kinds = OpenKinds{
          [](const Registry& registry) { return registry.datasets(); },
          [](const Scenario& s) { return selected(s.data); },
          [](const Registry& registry, const std::string& name, std::string options, Scenario& s) {
            s.data.kind = DataSpec::Kind::kRegistered;
            s.data.registered = {registry.find_dataset(name), std::move(options)};
          }},
      .fields =
          {
              field("samples", SCENARIO_MEMBER(data.samples), at_least(1),
                    "Number of samples, over all ranks.",
                    {.kinds = {"synthetic_tokens", "indices"}, .other_names = {"num_samples"}}),
              field("seq_len", SCENARIO_MEMBER(data.seq_len), at_least(1), "Tokens in a sample.",
                    {.kinds = {"synthetic_tokens", "text"},
                     .other_names = {"sequence_length", "seq_length", "block_size"}}),
              field("vocab_size", SCENARIO_MEMBER(data.vocab_size), at_least(1),
                    "Token ids are drawn below it; at most the model's `vocab_size`.",
                    {.kinds = tokens}),
              field("seed", SCENARIO_MEMBER(data.seed), any(), "Seed of the tokens.",
                    {.kinds = tokens}),
              field("path", SCENARIO_MEMBER(data.path), existing_file(),
                    "The file, relative to the scenario file.",
                    {.kinds = text,
                     .examples = {"data/text.txt"},
                     .other_names = {"file"},
                     .required = true}),
          },
  };
}

Section sampler_section() {
  return {
      .name = "sampler",
      .description =
          "How the samples are dealt to the ranks: `torch.utils.data.DistributedSampler`, index "
          "for index, and two ways in which hand-written samplers differ from it.",
      .fields =
          {
              field("shuffle", SCENARIO_MEMBER(sampler.shuffle), any(),
                    "Shuffle the samples in each epoch."),
              field("seed", SCENARIO_MEMBER(sampler.seed), any(),
                    "Seed of the shuffle; epoch e uses seed + e."),
              field("drop_last", SCENARIO_MEMBER(sampler.drop_last), any(),
                    "Leave out the samples that do not fill a round of all ranks, in place of "
                    "padding."),
              field("pad", SCENARIO_MEMBER(sampler.pad), any(),
                    "Repeat samples so that every rank gets as many. PyTorch always does, unless "
                    "it drops; with `false` ranks run out at different steps, and the others hang.",
                    {.other_names = {"padding"}}),
              field("set_epoch", SCENARIO_MEMBER(sampler.set_epoch), any(),
                    "Call `set_epoch` before each epoch. With `false` each has the order of epoch "
                    "0: the call that people forget."),
              field("shard_sizes", SCENARIO_MEMBER(sampler.shard_sizes), at_least(0),
                    "Samples of each rank, in place of dealing them out; `[]`: deal them out.",
                    {.examples = {Json::array({3, 3, 2, 2})}}),
          },
  };
}

}  // namespace gradsync::scenario_table
