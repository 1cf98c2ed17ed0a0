#include "gradsync/ddp/bucket_plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "gradsync/models/profile.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/recorded.hpp"

using gradsync::BucketTensor;
using gradsync::Bytes;
using gradsync::DType;

namespace {

/// Bytes of the buckets after the rebuild for gradients that arrive in this order.
std::vector<Bytes> bucket_bytes(const std::vector<std::int64_t>& numels,
                                const std::vector<Bytes>& limits) {
  std::vector<BucketTensor> tensors;
  std::vector<std::int64_t> indices;
  for (const auto numel : numels) {
    indices.push_back(static_cast<std::int64_t>(tensors.size()));
    tensors.push_back({.numel = numel});
  }
  std::vector<Bytes> result;
  for (const auto& bucket :
       gradsync::compute_bucket_assignment_by_size(tensors, limits, {}, indices).buckets) {
    result.push_back(0);
    for (const std::size_t tensor : bucket) result.back() += 4 * numels[tensor];
  }
  return result;
}

/// Sizes of ResNet-18's parameters in reverse order of registration.
std::vector<std::int64_t> resnet18_reversed() {
  std::vector<std::int64_t> numels{64 * 3 * 49, 64, 64};
  std::int64_t inputs = 64;
  for (const std::int64_t width : {64, 128, 256, 512}) {
    for (int block = 0; block < 2; ++block) {
      numels.insert(numels.end(),
                    {width * inputs * 9, width, width, width * width * 9, width, width});
      if (inputs != width) numels.insert(numels.end(), {width * inputs, width, width});
      inputs = width;
    }
  }
  numels.insert(numels.end(), {1000 * 512, 1000});
  return {numels.rbegin(), numels.rend()};
}

}  // namespace

TEST_CASE("bucket assignments are PyTorch's in every recorded case") {
  const auto recorded = gradsync::test::load_recorded("pytorch/buckets.json");
  REQUIRE(recorded.at("cases").size() == 64);
  for (const auto& c : recorded.at("cases")) {
    const auto& dtypes = c.at("dtypes");
    std::vector<BucketTensor> tensors;
    for (const auto& numel : c.at("numels")) {
      // One dtype recorded stands for all tensors.
      const auto& name = dtypes.size() == 1 ? dtypes.at(0) : dtypes.at(tensors.size());
      tensors.push_back({.numel = numel, .dtype = gradsync::parse_dtype(name.get<std::string>())});
    }
    const auto limits = c.at("limits_bytes").get<std::vector<Bytes>>();
    std::vector<bool> sparse;
    if (!c.at("expect_sparse").is_null()) sparse = c.at("expect_sparse").get<std::vector<bool>>();
    std::vector<std::int64_t> indices;
    if (!c.at("tensor_indices").is_null()) {
      indices = c.at("tensor_indices").get<std::vector<std::int64_t>>();
    }

    CAPTURE(c.at("note").get<std::string>());
    const auto result =
        gradsync::compute_bucket_assignment_by_size(tensors, limits, sparse, indices);
    const auto expected = c.at("buckets").get<std::vector<std::vector<std::size_t>>>();
    const auto expected_limits = c.at("per_bucket_limits").get<std::vector<Bytes>>();
    CHECK(result.buckets == expected);
    CHECK(result.limits == expected_limits);
  }
}

TEST_CASE("ResNet-50's buckets are those of PyTorch's traces") {
  const auto profile =
      gradsync::load_profile(gradsync::test::source_dir() + "/scenarios/models/resnet50-v100.json");
  std::vector<std::int64_t> numels;
  for (const std::size_t p : profile.ready_order()) {
    numels.push_back(gradsync::numel_of(profile.parameters[p].shape));
  }
  std::vector<Bytes> elements =
      bucket_bytes(numels, {gradsync::kDefaultFirstBucketBytes, gradsync::kDefaultBucketCapBytes});
  for (Bytes& bytes : elements) bytes /= 4;
  CHECK(elements == std::vector<Bytes>{2049000, 7875584, 6563840, 6637568, 2431040});
}

TEST_CASE("ResNet-18's buckets are those of pytorch/pytorch#48880") {
  const auto mib = [](Bytes value) { return value * 1024 * 1024; };
  CHECK(bucket_bytes(resnet18_reversed(), {mib(1), mib(25)}) ==
        std::vector<Bytes>{2052000, 28852224, 15853824});
  CHECK(bucket_bytes(resnet18_reversed(), {mib(1), mib(35)}) ==
        std::vector<Bytes>{2052000, 38297600, 6408448});
}

TEST_CASE("BERT-large's profile has the 398 tensors and 38 buckets that PyTorch has") {
  const auto profile = gradsync::load_profile(gradsync::test::source_dir() +
                                              "/scenarios/models/bert-large-a100.json");
  CHECK(profile.parameters.size() == 398);
  CHECK(profile.parameter_count() == 336226108);
  std::vector<std::int64_t> numels;
  for (const std::size_t p : profile.ready_order()) {
    numels.push_back(gradsync::numel_of(profile.parameters[p].shape));
  }
  CHECK(profile.ready_order().back() == 0);  // the tied word embedding
  CHECK(bucket_bytes(numels, {gradsync::kDefaultFirstBucketBytes, gradsync::kDefaultBucketCapBytes})
            .size() == 38);
}
