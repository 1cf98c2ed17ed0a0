#include "engine/ddp/bucket_plan.hpp"

#include <cstdint>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/recorded.hpp"

using gradsync::BucketTensor;
using gradsync::Bytes;
using gradsync::DType;

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
