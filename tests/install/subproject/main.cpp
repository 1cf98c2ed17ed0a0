#include <cstdio>

#include "gradsync/core/version.hpp"
#include "gradsync/ddp/bucket_plan.hpp"

int main() {
  const std::vector<gradsync::BucketTensor> tensors = {{100}, {200}};
  const std::vector<gradsync::Bytes> limits = {gradsync::kDefaultFirstBucketBytes};
  const auto plan = gradsync::compute_bucket_assignment_by_size(tensors, limits);
  std::printf("gradsync %s: %zu bucket(s)\n", gradsync::version(), plan.buckets.size());
  return plan.buckets.size() == 1 ? 0 : 1;
}
