// The profiles in scenarios/models/ against what is known of the models.
#include <algorithm>
#include <filesystem>
#include <set>

#include "gradsync/ddp/bucket_plan.hpp"
#include "gradsync/models/profile.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(gradsync::test::source_dir()) / "scenarios/models";

struct Known {
  const char* file;
  std::size_t tensors;
  std::int64_t parameters;
  std::size_t buckets;  ///< of DDP's first layout: caps of 1 and 25 MiB
};

/// Buckets of the first step: reverse registration order.
std::size_t first_buckets(const ModelProfile& profile) {
  std::vector<BucketTensor> tensors;
  for (auto p = profile.parameters.rbegin(); p != profile.parameters.rend(); ++p) {
    tensors.push_back({numel_of(p->shape), p->dtype, 0});
  }
  const std::vector<Bytes> limits = {kDefaultFirstBucketBytes, kDefaultBucketCapBytes};
  return compute_bucket_assignment_by_size(tensors, limits).buckets.size();
}

}  // namespace

TEST_CASE("shipped profiles: tensors, parameters and buckets are those of the real models") {
  // ResNet-50's 161 gradients and five buckets, and GPT-2 large's 436 gradients, are in public
  // traces of PyTorch; the other counts follow from the published architectures.
  const std::vector<Known> known = {
      {"resnet50-v100", 161, 25557032, 5},
      {"resnet101-v100", 314, 44549160, 8},
      {"resnext50-32x4d-v100", 161, 25028904, 5},
      {"resnext101-32x8d-v100", 314, 88791336, 13},
      {"bert-large-a100", 398, 336226108, 38},
      {"gpt2-small-a100", 148, 124439808, 13},
      {"gpt2-medium-a100", 292, 354823168, 37},
      {"gpt2-large-a100", 436, 774030080, 109},
      {"gpt2-xl-a100", 580, 1557611200, 145},
      {"vit-b16-a100", 152, 86567656, 14},
      {"vgg16", 32, 138357544, 6},
      {"llama2-7b-lora-a100", 128, 4194304, 2},
  };
  for (const Known& model : known) {
    CAPTURE(model.file);
    const ModelProfile profile = load_profile((kModels / model.file).string() + ".json");
    CHECK(profile.parameters.size() == model.tensors);
    CHECK(profile.parameter_count() == model.parameters);
    CHECK(first_buckets(profile) == model.buckets);
  }
}

TEST_CASE("shipped profiles: each says where it is from, and how sure that is") {
  std::size_t profiles = 0;
  for (const auto& entry : fs::directory_iterator(kModels)) {
    if (entry.path().extension() != ".json") continue;
    CAPTURE(entry.path().string());
    const ModelProfile profile = load_profile(entry.path().string());
    ++profiles;
    CHECK(profile.source.size() > 10);
    CHECK(std::set<std::string>{"measured", "scaled", "synthetic"}.count(profile.confidence) == 1);
    CHECK(profile.forward_time.count() > 0);
  }
  CHECK(profiles >= 15);
}

TEST_CASE("shipped profiles: GPT-2's tied embedding is there last, VGG's bytes are there first") {
  const ModelProfile gpt2 = load_profile((kModels / "gpt2-small-a100.json").string());
  CHECK(gpt2.parameters[gpt2.ready_order().back()].name == "transformer.wte.weight");
  const ModelProfile vgg = load_profile((kModels / "vgg16.json").string());
  const Seconds end = vgg.parameters[vgg.ready_order().back()].ready;
  std::int64_t early = 0;
  for (const ProfileParameter& parameter : vgg.parameters) {
    if (parameter.ready < end / 20) early += numel_of(parameter.shape);
  }
  CHECK(early > vgg.parameter_count() * 8 / 10);
}

}  // namespace gradsync
