#include "gradsync/simulator/plan/gpu_costs.hpp"

#include "gradsync/simulator/plan/nccl_model.hpp"

namespace gradsync {
namespace {

/// Data sheets: streaming multiprocessors (compute units), and memory bandwidth.
struct Gpu {
  int multiprocessors;
  BytesPerSecond memory;
};

constexpr Gpu kV100{80, {900e9}};
constexpr Gpu kA100{108, {1555e9}};
constexpr Gpu kH100{132, {3350e9}};
constexpr Gpu kB200{148, {8000e9}};
constexpr Gpu kCard{128, {1008e9}};  // RTX 4090
constexpr Gpu kMi300x{304, {5300e9}};

/// Share of the memory bandwidth that a copy reaches.
constexpr double kCopyShare = 0.85;
/// A kernel with next to no work, and the gap to the next one.
constexpr Seconds kShortestKernel{4e-6};
/// A bucket of DDP's default size: its collective has the channels that most of them have.
constexpr Bytes kBucket = 25 << 20;

const Gpu& gpu_of(const ClusterSpec& cluster) {
  if (cluster.library == ClusterSpec::Library::kRccl) return kMi300x;
  if (cluster.node_topology == ClusterSpec::NodeTopology::kPcieTree) return kCard;
  switch (cluster.generation) {
    case ClusterSpec::Generation::kVolta:
      return kV100;
    case ClusterSpec::Generation::kAmpere:
      return kA100;
    case ClusterSpec::Generation::kHopper:
      return kH100;
    case ClusterSpec::Generation::kBlackwell:
      break;
  }
  return kB200;
}

}  // namespace

GpuCosts gpu_costs(const ClusterSpec& cluster, int ranks, bool gradient_as_bucket_view) {
  GpuCosts costs;
  if (cluster.library == ClusterSpec::Library::kGloo) return costs;
  const Gpu& gpu = gpu_of(cluster);
  costs.per_gradient = kShortestKernel;
  costs.seconds_per_byte = 2 / (kCopyShare * gpu.memory.value);
  costs.copies_back = !gradient_as_bucket_view;
  if (ranks > 1) {
    const nccl::Model model(cluster, ranks);
    const int channels = model.candidates(kBucket).front().channels;
    costs.while_communicating =
        static_cast<double>(gpu.multiprocessors) / (gpu.multiprocessors - channels);
  }
  return costs;
}

}  // namespace gradsync
