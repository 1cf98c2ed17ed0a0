#include "gradsync/ddp/bucket.hpp"

#include <limits>

#include "gradsync/core/error.hpp"

namespace gradsync {

std::vector<Bucket> make_buckets(const std::vector<ParameterPtr>& parameters,
                                 const std::vector<std::vector<std::size_t>>& assignment) {
  std::vector<Bucket> buckets;
  buckets.reserve(assignment.size());
  for (const std::vector<std::size_t>& indices : assignment) {
    std::int64_t elements = 0;
    for (const std::size_t index : indices) elements += parameters.at(index)->data.numel();

    const Tensor& first = parameters.at(indices.front())->data;
    Bucket bucket;
    bucket.gradients = Tensor::empty({elements}, first.dtype(), first.device());
    bucket.slots.reserve(indices.size());
    std::vector<std::string> names;
    names.reserve(indices.size());
    std::int64_t offset = 0;
    for (const std::size_t index : indices) {
      const Parameter& parameter = *parameters[index];
      bucket.slots.push_back(
          {index, offset, bucket.gradients.slice(offset, parameter.data.shape())});
      names.push_back(parameter.name());
      offset += parameter.data.numel();
    }
    bucket.names = std::make_shared<const std::vector<std::string>>(std::move(names));
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

std::vector<BucketLocation> locate_parameters(const std::vector<Bucket>& buckets,
                                              std::size_t parameter_count) {
  constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  std::vector<BucketLocation> locations(parameter_count, {kNowhere, kNowhere});
  std::size_t found = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (std::size_t s = 0; s < buckets[b].slots.size(); ++s) {
      BucketLocation& location = locations.at(buckets[b].slots[s].parameter);
      if (location.bucket == kNowhere) ++found;
      location = {b, s};
    }
  }
  std::size_t slots = 0;
  for (const Bucket& bucket : buckets) slots += bucket.slots.size();
  if (found != parameter_count || slots != parameter_count) {
    throw Error(ErrorCode::kInternal, "a bucket layout that does not hold every parameter once");
  }
  return locations;
}

}  // namespace gradsync
