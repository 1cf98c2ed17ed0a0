// What moves bytes, as data. Pace and networks: estimated by bench/fit_constants.py, which prints
// these tables. Chunks: src/enqueue.cc and src/transport/nvls.cc of NCCL v2.30.7-1.

#include "gradsync/simulator/plan/nccl_pace.hpp"

#include <algorithm>
#include <bit>

namespace gradsync::nccl {
namespace {

using Generation = ClusterSpec::Generation;
using Kind = ClusterSpec::NetworkKind;

constexpr double kKiB = 1024;
constexpr double kGigabyte = 1e9;

constexpr Seconds us(double value) {
  return Seconds(value * 1e-6);
}

/// Channels of a tree with LL, LL128 and Simple: in proportion to Simple's.
constexpr PerProtocol channels(double simple_gbps) {
  return {0.67 * simple_gbps * kGigabyte, 1.08 * simple_gbps * kGigabyte, simple_gbps * kGigabyte};
}

//                    launch   hop    LL       channels        NVLS     its step
const Pace kVoltaPace{us(30.6), 1.56, {47e9}, channels(10.4), {0}, us(0)};
const Pace kAmperePace{us(0), 3.02, {33.9e9}, channels(14.9), {0}, us(0)};
const Pace kHopperPace{us(1.7), 1, {125e9}, channels(10.4), {302e9}, us(0.5)};
// No table says what Blackwell does with LL: in proportion to NCCL's own limits, 282 by 141.
const Pace kBlackwellPace{us(1.7), 1, {250e9}, channels(10.4), {569e9}, us(0.98)};
// GPUs without NVLink, whatever their generation; LL by way of the host's memory.
const Pace kPciePace{us(21.7), 1, {7.7e9}, channels(10.4), {0}, us(0)};
// Words of 8 bytes that a GPU writes into another's memory over PCIe.
constexpr BytesPerSecond kLlOverPcie{0.7e9};
// RCCL on MI355X.
const Pace kRcclPace{us(34.4), 0, {0}, channels(10.4), {0}, us(0)};

const Pace& row(const ClusterSpec& cluster) {
  if (cluster.library == ClusterSpec::Library::kRccl) return kRcclPace;
  if (cluster.node_topology == ClusterSpec::NodeTopology::kPcieTree) return kPciePace;
  switch (cluster.generation) {
    case Generation::kVolta:
      return kVoltaPace;
    case Generation::kAmpere:
      return kAmperePace;
    case Generation::kHopper:
      return kHopperPace;
    case Generation::kBlackwell:
      break;
  }
  return kBlackwellPace;
}

/// What the sockets of one adapter carry over kernel TCP, whatever its line rate.
constexpr BytesPerSecond kTcpRate{0.74e9};

/// Payload, latency, handshake.
NetworkPace known(Kind kind, BytesPerSecond line) {
  switch (kind) {
    case Kind::kAsDescribed:
      break;
    case Kind::kInfiniband:
      return {0.94, us(0), us(0)};
    case Kind::kRoce:
      return {0.93, us(4.8), us(0)};
    case Kind::kEfa:
      return {0.87, us(0), us(0)};
    case Kind::kTcpx:
      return {0.89, us(12.4), us(0)};
    case Kind::kSlingshot:
      return {0.83, us(0), us(67.5)};
    case Kind::kTcp:
      return {std::min(0.93, kTcpRate.value / line.value), us(97), us(0)};
  }
  return {};
}

}  // namespace

Pace pace(const ClusterSpec& cluster) {
  Pace result = row(cluster);
  const ClusterSpec::Nccl& own = cluster.nccl;
  if (cluster.node_topology == ClusterSpec::NodeTopology::kPcieTree && cluster.gpu_peer_to_peer) {
    result.ll = kLlOverPcie;
  }
  result.launch = own.launch.value_or(result.launch);
  result.hop_scale = own.hop_scale.value_or(result.hop_scale);
  result.ll = own.ll_bandwidth.value_or(result.ll);
  result.nvls = own.nvls_bandwidth.value_or(result.nvls);
  result.nvls_step = own.nvls_step.value_or(result.nvls_step);
  if (own.channel_bandwidth) {
    const double factor =
        own.channel_bandwidth->value / result.channel[static_cast<std::size_t>(Protocol::kSimple)];
    for (double& rate : result.channel) rate *= factor;
  }
  return result;
}

NetworkPace network_pace(const ClusterSpec& cluster) {
  const ClusterSpec::Network& network = cluster.network;
  const NetworkPace kind = known(network.kind, cluster.inter_node.bandwidth);
  return {network.payload.value_or(kind.payload), network.latency.value_or(kind.latency),
          network.handshake.value_or(kind.handshake)};
}

double ring_chunk(Protocol protocol) noexcept {
  switch (protocol) {
    case Protocol::kLl:
      return 32 * kKiB;
    case Protocol::kLl128:
      return 576'000;
    case Protocol::kSimple:
      break;
  }
  return 512 * kKiB;
}

double tree_chunk(Protocol protocol, double bytes, double channels, int nodes, int ranks_per_node) {
  double chunk = ring_chunk(protocol);
  if (protocol != Protocol::kLl128) return chunk;
  const double depth = std::bit_width(static_cast<unsigned>(nodes));  // 1 + log2
  const double steps = (depth + 0.1 * ranks_per_node) / ranks_per_node;
  const auto rounds = [&] { return bytes / (channels * chunk); };
  while (rounds() < 64 * steps && chunk > 128 * kKiB) chunk /= 2;
  while (rounds() < 16 * steps && chunk > 32 * kKiB) chunk /= 2;
  return chunk;
}

double nvls_chunk(double bytes, int concurrent) {
  double chunk = 128 * kKiB;
  if (bytes < 64 * concurrent * chunk) chunk = 64 * kKiB;
  if (bytes < 8 * concurrent * chunk) chunk = std::min(chunk, 32 * kKiB);
  if (bytes < 2 * concurrent * chunk) chunk = std::min(chunk, 16 * kKiB);
  return chunk;
}

double nvls_tree_chunk(double bytes, int concurrent, int nodes, bool short_chunks) {
  double chunk = (nodes >= 4 || short_chunks ? 64 : 128) * kKiB;
  if (bytes < 4 * concurrent * chunk) chunk = 64 * kKiB;
  if (bytes < concurrent * chunk) chunk = 32 * kKiB;
  return chunk;
}

int nvls_kernel_channels(Generation generation, int nodes) noexcept {
  if (generation == Generation::kBlackwell) return nodes == 1 ? 24 : 32;
  return 16;
}

}  // namespace gradsync::nccl
