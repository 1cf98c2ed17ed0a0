// The rows of "model", "data" and "sampler".

#include "gradsync/testbed/scenario/scenario_codec.hpp"

namespace gradsync::scenario_table {

template <>
struct EnumNames<BlockNorm> {
  static constexpr std::array<std::pair<const char*, BlockNorm>, 2> kNames{
      {{"layer_norm", BlockNorm::kLayerNorm}, {"batch_norm", BlockNorm::kBatchNorm}}};
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

std::vector<Field> model_fields() {
  const std::vector<std::string> transformer{"transformer"};
  const std::vector<std::string> replay{"replay"};
  return {
      field("vocab_size", SCENARIO_MEMBER(model.transformer.vocab_size), at_least(1),
            "Number of token ids: rows of the embedding, outputs of the head.",
            {.kinds = transformer, .other_names = {"vocab", "num_embeddings"}}),
      field("d_model", SCENARIO_MEMBER(model.transformer.d_model), at_least(1),
            "Width: features of a token.",
            {.kinds = transformer, .other_names = {"hidden_size", "embed_dim"}}),
      field("nhead", SCENARIO_MEMBER(model.transformer.nhead), at_least(1),
            "Number of heads of the self-attention; must divide `d_model`.",
            {.kinds = transformer, .other_names = {"num_heads", "n_heads"}}),
      field("num_layers", SCENARIO_MEMBER(model.transformer.num_layers), at_least(1),
            "Number of encoder layers.",
            {.kinds = transformer, .other_names = {"layers", "n_layers"}}),
      field("dim_feedforward", SCENARIO_MEMBER(model.transformer.dim_feedforward), at_least(1),
            "Width inside the feed-forward blocks.", {.kinds = transformer}),
      field("norm_first", SCENARIO_MEMBER(model.transformer.norm_first), any(),
            "Apply norms before attention and feed-forward (pre-norm), not after.",
            {.kinds = transformer}),
      field("norm", SCENARIO_MEMBER(model.transformer.norm), any(),
            "`batch_norm` has buffers, which `ddp.broadcast_buffers` sends from rank 0 to "
            "all before each forward, and which drift apart without it.",
            {.kinds = transformer}),
      field("dtype", SCENARIO_MEMBER(model.transformer.dtype), any(),
            "Type of parameters, gradients and buckets. Operations on 16-bit values "
            "compute in float32 and round once.",
            {.kinds = transformer, .other_names = {"torch_dtype", "precision"}}),
      field("profile", SCENARIO_MEMBER(model.replay.profile), existing_file(),
            "The profile, relative to the scenario file.",
            {.kinds = replay, .examples = {"models/bert-large-a100.json"}, .required = true}),
      field("compute_scale", SCENARIO_MEMBER(model.replay.compute_scale), above(0),
            "Factor on every time of the profile: 0.5 is a GPU that is twice as fast.",
            {.kinds = replay}),
      field("payload", SCENARIO_MEMBER(model.replay.payload), any(),
            "In `sim`, give parameters and gradients bytes with exactly known values, and "
            "so a parameter hash. On real backends they always have bytes.",
            {.kinds = replay}),
  };
}

}  // namespace

Section model_section() {
  constexpr auto kind = SCENARIO_MEMBER(model.kind);
  return {
      .name = "model",
      .description =
          "The model that is trained. A program can register models of its own, and "
          "give them to all subcommands (docs/library.md).",
      .kinds = with_registered_models({
          enum_kind("transformer",
                    "A transformer encoder over tokens (embedding, self-attention blocks, head), "
                    "really "
                    "computed on every backend. The default model has 1,567,208 parameters in 27 "
                    "tensors.",
                    kind, ModelSpec::Kind::kTransformer),
          enum_kind("replay",
                    "A measured profile of any model: its parameters, its times, and the order "
                    "in which "
                    "its gradients become ready. Nothing is computed: the time passes, and the "
                    "gradients are synthetic.",
                    kind, ModelSpec::Kind::kReplay),
      }),
      .fields = model_fields(),
      .has_registered_kinds = true,
  };
}

Section data_section() {
  static constexpr auto kind = SCENARIO_MEMBER(data.kind);
  const std::vector<std::string> tokens{"synthetic_tokens"};
  const std::vector<std::string> text{"text"};
  return {
      .name = "data",
      .description = "The data set. A program can register data sets of its own (docs/library.md).",
      .kinds = with_registered_datasets({
          enum_kind("synthetic_tokens",
                    "Sequences of random token ids; the targets are the inputs shifted by one.",
                    kind, DataSpec::Kind::kSyntheticTokens),
          {"text",
           "The bytes of a file as tokens (vocabulary 256), cut into sequences; the targets "
           "are the inputs shifted by one byte.",
           [](Scenario& scenario) {
             scenario.data.kind = DataSpec::Kind::kText;
             scenario.data.vocab_size = 256;
           },
           [](const Scenario& scenario) { return kind(scenario) == DataSpec::Kind::kText; }},
          enum_kind("indices", "Samples without content, for a replayed model.", kind,
                    DataSpec::Kind::kIndices),
      }),
      .fields =
          {
              field("samples", SCENARIO_MEMBER(data.samples), at_least(1),
                    "Number of samples of the whole data set.",
                    {.kinds = {"synthetic_tokens", "indices"}, .other_names = {"num_samples"}}),
              field("seq_len", SCENARIO_MEMBER(data.seq_len), at_least(1), "Tokens in a sample.",
                    {.kinds = {"synthetic_tokens", "text"},
                     .other_names = {"sequence_length", "seq_length", "block_size"}}),
              field("vocab_size", SCENARIO_MEMBER(data.vocab_size), at_least(1),
                    "Upper bound (exclusive) of the token ids; at most the model's `vocab_size`.",
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
      .has_registered_kinds = true,
  };
}

Section sampler_section() {
  return {
      .name = "sampler",
      .description =
          "How samples are dealt to the ranks: as by `torch.utils.data.DistributedSampler`, index "
          "for index, with two options for what hand-written samplers do differently.",
      .fields =
          {
              field("shuffle", SCENARIO_MEMBER(sampler.shuffle), any(),
                    "Shuffle the samples in each epoch."),
              field("seed", SCENARIO_MEMBER(sampler.seed), any(),
                    "Seed of the shuffle; epoch e uses seed + e."),
              field("drop_last", SCENARIO_MEMBER(sampler.drop_last), any(),
                    "Drop the samples that do not fill a round of all ranks, instead of padding."),
              field("pad", SCENARIO_MEMBER(sampler.pad), any(),
                    "Repeat samples so that every rank gets the same number. PyTorch always does "
                    "so, unless it drops samples. With `false`, some ranks run out of data before "
                    "the others, and those hang.",
                    {.other_names = {"padding"}}),
              field("set_epoch", SCENARIO_MEMBER(sampler.set_epoch), any(),
                    "Call `set_epoch` before each epoch. With `false` (a common mistake) every "
                    "epoch has the order of epoch 0."),
              field("shard_sizes", SCENARIO_MEMBER(sampler.shard_sizes), at_least(0),
                    "Number of samples of each rank; `[]`: deal the samples evenly.",
                    {.examples = {Json::array({3, 3, 2, 2})}}),
          },
  };
}

}  // namespace gradsync::scenario_table
