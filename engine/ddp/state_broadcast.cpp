#include "gradsync/ddp/state_broadcast.hpp"

#include <array>
#include <deque>

#include "gradsync/ddp/bucket_plan.hpp"

namespace gradsync {
namespace {

constexpr std::size_t kBroadcastsUnderWay = 2;

/// One broadcast in flight, with its packed tensors.
struct Package {
  std::vector<Tensor> tensors;
  std::vector<Tensor> places;  // views of `flat`, one per tensor
  Tensor flat;
  WorkPtr work;

  void copy_in() {
    std::vector<TensorPair> pairs;
    for (std::size_t i = 0; i < tensors.size(); ++i) pairs.push_back({&places[i], &tensors[i]});
    flat.device().copy_many(pairs);
  }
  void unpack() {
    work->wait();
    std::vector<TensorPair> pairs;
    for (std::size_t i = 0; i < tensors.size(); ++i) pairs.push_back({&tensors[i], &places[i]});
    flat.device().copy_many(pairs);
  }
};

Package pack(const std::vector<Tensor>& tensors, const std::vector<std::size_t>& indices) {
  Package package;
  std::int64_t elements = 0;
  for (const std::size_t i : indices) {
    package.tensors.push_back(tensors[i]);
    elements += tensors[i].numel();
  }
  const Tensor& first = package.tensors.front();
  package.flat = Tensor::empty({elements}, first.dtype(), first.device());
  std::int64_t offset = 0;
  for (const Tensor& tensor : package.tensors) {
    package.places.push_back(package.flat.slice(offset, tensor.shape()));
    offset += tensor.numel();
  }
  package.copy_in();
  return package;
}

}  // namespace

void broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                         const CollectiveOptions& options) {
  if (tensors.empty()) return;
  std::vector<BucketTensor> descriptions;
  descriptions.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    descriptions.push_back({.numel = tensor.numel(),
                            .dtype = tensor.dtype(),
                            .device = static_cast<int>(tensor.device().type())});
  }
  const std::array limits{kBroadcastBucketBytes};
  const auto assignment = compute_bucket_assignment_by_size(descriptions, limits);

  std::deque<Package> under_way;
  for (const std::vector<std::size_t>& indices : assignment.buckets) {
    if (under_way.size() == kBroadcastsUnderWay) {
      under_way.front().unpack();
      under_way.pop_front();
    }
    under_way.push_back(pack(tensors, indices));
    under_way.back().work = group.broadcast(under_way.back().flat, root, options);
  }
  for (Package& package : under_way) package.unpack();
}

}  // namespace gradsync
