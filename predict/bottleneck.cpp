#include "gradsync/predict/bottleneck.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace gradsync {
namespace {

Bottleneck hop_of(const char* link, LinkSpec hop, double chunk_bytes) {
  Bottleneck bottleneck;
  bottleneck.link = link;
  bottleneck.hop = hop;
  bottleneck.step = hop.latency + Seconds(chunk_bytes / hop.bandwidth.value);
  if (bottleneck.step.count() > 0) bottleneck.latency_share = hop.latency / bottleneck.step;
  return bottleneck;
}

}  // namespace

Bottleneck find_bottleneck(const ClusterSpec& cluster, std::int64_t ranks, Bytes bucket_bytes) {
  if (ranks < 2) return {};
  const double chunk = static_cast<double>(bucket_bytes) / static_cast<double>(ranks);
  const LinkSpec inside{cluster.intra_node.bandwidth, 2 * cluster.intra_node.latency};
  const Bottleneck within = hop_of("intra_node", inside, chunk);
  if (ranks <= cluster.gpus_per_node) return within;
  const LinkSpec between{
      {std::min(cluster.intra_node.bandwidth.value, cluster.inter_node.bandwidth.value)},
      2 * (cluster.intra_node.latency + cluster.inter_node.latency)};
  const Bottleneck across = hop_of("inter_node", between, chunk);
  return cluster.gpus_per_node > 1 && within.step > across.step ? within : across;
}

std::string describe(const Bottleneck& bottleneck) {
  if (bottleneck.link.empty()) return "none (one rank)";
  const double latency_percent = bottleneck.latency_share * 100;
  const bool by_latency = latency_percent >= 50;
  return fmt::format(
      "{}, {:.3g} GB/s and {:.3g} us a hop: {:.0f}% of a ring step is {}", bottleneck.link,
      bottleneck.hop.bandwidth.value / 1e9, bottleneck.hop.latency.count() * 1e6,
      by_latency ? latency_percent : 100 - latency_percent, by_latency ? "latency" : "bandwidth");
}

}  // namespace gradsync
