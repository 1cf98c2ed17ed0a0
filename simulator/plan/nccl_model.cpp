#include "gradsync/simulator/plan/nccl_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "gradsync/core/error.hpp"
#include "gradsync/simulator/platform/gpu_cable.hpp"

namespace gradsync::nccl {
namespace {

using Generation = ClusterSpec::Generation;
using NodeTopology = ClusterSpec::NodeTopology;

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;

std::size_t index(Protocol protocol) {
  return static_cast<std::size_t>(protocol);
}

int floor_log2(int value) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(value))) - 1;
}

/// GB/s that a GPU can give to each of `channels` inside its node.
double gpu_gbps(const ClusterSpec& cluster, std::int64_t ranks, int channels) {
  // In a cube mesh a GPU has six links, otherwise one cable.
  const double links = cluster.node_topology == NodeTopology::kCubeMesh ? 6 : 1;
  return gpu_cable(cluster, ranks).bandwidth.value / kGiga * links / channels;
}

Graph ring_graph(const ClusterSpec& cluster, int ranks, int nodes) {
  const double gpu = gpu_cable(cluster, ranks).bandwidth.value / kGiga;
  Graph graph;
  if (nodes == 1) {
    switch (cluster.node_topology) {
      case NodeTopology::kSwitch:
      case NodeTopology::kFullMesh:
        graph.channels = limits(cluster.generation).nvlink_channels;
        graph.intra_gbps = gpu / graph.channels;
        break;
      case NodeTopology::kCubeMesh:
        graph.channels = 6;  // one per NVLink of a GPU
        graph.intra_gbps = gpu;
        break;
      case NodeTopology::kPcieTree:
        graph.channels = 2;
        graph.intra_gbps = gpu / graph.channels;
        break;
    }
    graph.inter_gbps = graph.intra_gbps;
    return graph;
  }
  graph.channels = static_cast<int>(cluster.nics_per_node);
  const double adapter = cluster.inter_node.bandwidth.value / kGiga;
  const double bound = std::min(adapter, gpu_gbps(cluster, ranks, graph.channels));
  graph.inter_gbps = bound;  // slower than the slowest in the list: use it as is
  for (const double speed : network_speeds(cluster.generation)) {
    if (speed > 0 && speed <= bound) {
      graph.inter_gbps = speed;
      break;
    }
  }
  graph.intra_gbps = graph.inter_gbps;
  return graph;
}

/// The tree's channels, derived from the ring's. Between two nodes a tree sends each byte once over
/// an adapter, a ring nearly twice, so NCCL allows the tree more bandwidth inside the nodes
/// (src/graph/search.cc, pass 2): the next speeds of its list, up to twice the adapter's or the
/// GPU's limit.
Graph tree_graph(const ClusterSpec& cluster, int ranks, int nodes, Graph graph) {
  if (nodes == 1) return graph;
  const auto speeds = network_speeds(cluster.generation);
  auto speed = std::find(speeds.rbegin(), speeds.rend(), graph.intra_gbps);
  if (speed == speeds.rend()) return graph;
  for (++speed; speed != speeds.rend(); ++speed) {
    if (graph.intra_gbps >= 2 * graph.inter_gbps ||
        *speed > gpu_gbps(cluster, ranks, graph.channels))
      break;
    graph.intra_gbps = *speed;
  }
  return graph;
}

Graph nvls_graph(const ClusterSpec& cluster, int nodes) {
  Graph graph;
  graph.channels = std::max(limits(cluster.generation).nvls_channels, 1);
  // 8 x 40 GB/s of a Hopper GPU's 370.8 (log in NVIDIA/nccl#1197): NVLS uses 0.863 of the links.
  graph.intra_gbps = 0.863 * cluster.intra_node.bandwidth.value / kGiga / graph.channels;
  graph.inter_gbps = graph.intra_gbps;
  if (nodes > 1) {
    const double adapters =
        cluster.inter_node.bandwidth.value / kGiga * static_cast<double>(cluster.nics_per_node);
    graph.inter_gbps = adapters / graph.channels;
  }
  return graph;
}

/// The channels that NCCL lays over a graph: twice those of the search, and few fast ones first cut
/// in two (src/graph/search.cc, ncclTopoDupChannels; src/graph/connect.cc).
int laid_channels(Generation generation, const Graph& graph) {
  const bool new_gpu = generation >= Generation::kHopper;
  const bool cut =
      graph.intra_gbps >= 25 && (!new_gpu || graph.channels <= 4 || graph.intra_gbps >= 50);
  return std::min((cut ? 4 : 2) * graph.channels, 64);
}

}  // namespace

Model::Model(const ClusterSpec& cluster, int ranks) : cluster_(cluster), ranks_(ranks) {
  const auto gpus = static_cast<int>(cluster.gpus_per_node);
  nodes_ = (ranks + gpus - 1) / gpus;
  per_node_ = std::min(ranks, gpus);
  ring_ = nccl::ring_graph(cluster, ranks, nodes_);
  tree_ = tree_graph(cluster, ranks, nodes_, ring_);
  nvls_ = nvls_graph(cluster, nodes_);
}

std::size_t Model::nodes_column() const noexcept {
  return static_cast<std::size_t>(std::min(nodes_, 3) - 1);
}

bool Model::allows(Algorithm algorithm, Protocol protocol) const {
  if (nodes_ > 1 && !network_allows(protocol)) return false;
  const bool nvls = algorithm == Algorithm::kNvls || algorithm == Algorithm::kNvlsTree;
  if (nvls) {
    const bool has_switch = cluster_.node_topology == NodeTopology::kSwitch &&
                            limits(cluster_.generation).nvls_efficiency > 0 && per_node_ > 1 &&
                            cluster_.nccl.nvls;
    // Across nodes, plain NVLS needs SHARP in the fabric, which is off by default.
    const bool right_size = (algorithm == Algorithm::kNvls) == (nodes_ == 1);
    return has_switch && right_size && protocol == Protocol::kSimple;
  }
  if (protocol == Protocol::kLl128) {
    const bool nvlink = cluster_.node_topology != NodeTopology::kPcieTree || per_node_ == 1;
    return nvlink && (nodes_ == 1 || cluster_.gpu_direct);
  }
  return true;
}

bool Model::network_allows(Protocol protocol) const {
  switch (cluster_.network.kind) {
    case ClusterSpec::NetworkKind::kTcpx:
      return protocol == Protocol::kSimple;
    case ClusterSpec::NetworkKind::kEfa:
      // Flags must not overtake data: EFA keeps the order of 128 bytes from p5 on.
      return protocol == Protocol::kSimple ||
             (protocol == Protocol::kLl128 && cluster_.generation >= Generation::kHopper);
    default:
      return true;
  }
}

double Model::wire_factor(Protocol protocol) noexcept {
  switch (protocol) {
    case Protocol::kLl:
      return 2.0;  // 4 bytes of flag with 4 of data
    case Protocol::kLl128:
      return 128.0 / 120.0;
    case Protocol::kSimple:
      break;
  }
  return 1.0;
}

double Model::kernel_limit(const Candidate& way) const {
  const Limits& limit = limits(cluster_.generation);
  const std::size_t column = nodes_column();
  const int laid = laid_channels(cluster_.generation, ring_);
  const double filled = way.lanes * way.width / laid;
  const double n = ranks_;
  if (way.algorithm == Algorithm::kTree && way.protocol != Protocol::kLl) {
    const bool ll128 = way.protocol == Protocol::kLl128;
    const double channel = ll128 ? limit.tree_ll128_channel[column] : limit.tree_channel[column];
    return filled * laid / 2 * channel / 2 * kGiga;
  }
  if (way.algorithm == Algorithm::kRing && way.protocol == Protocol::kLl128) {
    const double channel = limit.ring_ll128_channel[column];
    return filled * ring_.channels * channel * n / (2 * (n - 1)) * kGiga;
  }
  return std::numeric_limits<double>::infinity();
}

double Model::bus_gbps(Algorithm algorithm, Protocol protocol) const {
  const Limits& limit = limits(cluster_.generation);
  const std::size_t column = nodes_column();
  if (algorithm == Algorithm::kNvls || algorithm == Algorithm::kNvlsTree) {
    const double share = static_cast<double>(nvls_.channels - 1) / nvls_.channels;
    double channel = nvls_.intra_gbps * limit.nvls_efficiency * share * 2;
    if (nodes_ > 1) {
      channel = std::min(channel, nvls_.inter_gbps * (nodes_ <= 2 ? 2 : 1));
      const double most = limit.nvls_tree_channel[column];
      if (most > 0) channel = std::min(channel, most);
    }
    return nvls_.channels * channel;
  }
  const double channels = ring_.channels;
  const double ll_max =
      nodes_ == 1 ? limit.ll_max[0] : ll_max_between_nodes(cluster_.cpu_vendor)[column];
  const Graph& graph = algorithm == Algorithm::kTree ? tree_ : ring_;
  double bus = channels * (nodes_ <= 2 ? graph.intra_gbps : graph.inter_gbps);
  if (algorithm == Algorithm::kRing) {
    if (protocol == Protocol::kLl) return std::min(ll_max, bus / 2);
    if (protocol == Protocol::kLl128) {
      return std::min(bus * 0.92, channels * limit.ring_ll128_channel[column]);
    }
    return bus;
  }
  bus = std::min(bus * 0.92, channels * limit.tree_channel[column]);
  if (protocol == Protocol::kLl) return std::min(bus / 3.8, ll_max);
  if (protocol == Protocol::kLl128) {
    return std::min(bus * (nodes_ == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                    channels * limit.tree_ll128_channel[column]);
  }
  return bus;
}

Seconds Model::hop_latency(Algorithm algorithm, Protocol protocol, bool between_nodes) const {
  const Latencies& latency = latencies(algorithm);
  const std::size_t p = index(protocol);
  if (!between_nodes) {
    const bool pci = cluster_.node_topology == NodeTopology::kPcieTree;
    return Seconds((pci ? latency.pci : latency.nvlink)[p] * kMicro);
  }
  // With one rank per node a ring's hop across the network is as fast as a tree's.
  const double network = per_node_ == 1 && algorithm == Algorithm::kRing
                             ? latencies(Algorithm::kTree).network[p]
                             : latency.network[p];
  return Seconds(network * kMicro);
}

Seconds Model::base_latency(Algorithm algorithm, Protocol protocol) const {
  return Seconds(latencies(algorithm).base[index(protocol)] * kMicro);
}

double Model::latency_us(Algorithm algorithm, Protocol protocol) const {
  const double base = latencies(algorithm).base[index(protocol)];
  const double intra = hop_latency(algorithm, protocol, false).count() / kMicro;
  const double inter = hop_latency(algorithm, protocol, true).count() / kMicro;
  switch (algorithm) {
    case Algorithm::kRing: {
      double overhead = 0;  // of the network proxy, if there is one
      if (nodes_ > 1) {
        overhead = cluster_.cpu_vendor == ClusterSpec::CpuVendor::kAmd ? 2.0 : 1.0;
        if (protocol == Protocol::kSimple) overhead *= 3;
      }
      const int network_steps = nodes_ == 1 ? 0 : 2 * (nodes_ - 1);
      const int steps = 2 * (ranks_ - 1);
      return base + (steps - network_steps) * std::max(intra, overhead) + network_steps * inter;
    }
    case Algorithm::kTree:
      return base + 2 * ((per_node_ - 1) * intra + floor_log2(nodes_) * inter);
    case Algorithm::kNvls:
      return intra;
    case Algorithm::kNvlsTree:
      break;
  }
  return base + intra + 2 * floor_log2(nodes_) * inter;
}

/// Over slow links, Simple has 256 threads per channel instead of 512.
bool Model::has_narrow_channels(Protocol protocol) const {
  return protocol == Protocol::kSimple && ring_.channels * ring_.intra_gbps <= 12;
}

double Model::lanes(Algorithm algorithm, Protocol protocol, Bytes bytes) const {
  if (algorithm == Algorithm::kNvls || algorithm == Algorithm::kNvlsTree) return nvls_.channels;
  double threads = protocol == Protocol::kLl128 ? 640 : 512;
  double threshold = 8;
  if (protocol == Protocol::kSimple) {
    threshold = 64;
    if (has_narrow_channels(protocol)) threads = 256;
  } else if (protocol == Protocol::kLl && algorithm == Algorithm::kRing) {
    threshold = 8.0 * ranks_;
  }
  const double filled = static_cast<double>(bytes) / (threads * threshold);
  return std::clamp<double>(filled, 1, laid_channels(cluster_.generation, ring_));
}

Candidate Model::rate(Algorithm algorithm, Protocol protocol, Bytes bytes) const {
  Candidate candidate;
  candidate.algorithm = algorithm;
  candidate.protocol = protocol;
  candidate.lanes = lanes(algorithm, protocol, bytes);
  candidate.channels = static_cast<int>(candidate.lanes);
  if (has_narrow_channels(protocol)) candidate.width = 0.5;
  if (ranks_ == 1) return candidate;
  double latency = latency_us(algorithm, protocol);
  // A ring sends every byte 2(n-1)/n times; NCCL rates NVLS in the same unit.
  const double n = ranks_;
  const double factor = algorithm == Algorithm::kTree ? 0.5 : n / (2 * (n - 1));
  double bandwidth = bus_gbps(algorithm, protocol) * factor;
  candidate.latency = Seconds(latency * kMicro);
  candidate.bandwidth = {bandwidth * kGiga};
  const bool corrected =
      algorithm == Algorithm::kTree ||
      (algorithm == Algorithm::kNvlsTree && cluster_.generation == Generation::kBlackwell &&
       cluster_.cpu_vendor != ClusterSpec::CpuVendor::kOther);
  if (corrected) {
    const auto size = static_cast<std::uint64_t>(std::max<Bytes>(bytes / 64, 1));
    const auto step = static_cast<std::size_t>(std::bit_width(size) - 1);
    if (step < kTreeCorrections - 1) bandwidth *= tree_correction(protocol)[step];
  }
  const double bytes_a_rank = static_cast<double>(bytes) / (ring_.channels * n);
  if (algorithm == Algorithm::kRing && protocol == Protocol::kSimple && nodes_ > 1 &&
      bytes_a_rank >= 64) {
    latency *= limits(cluster_.generation).plateau_factor;
  }
  candidate.time = Seconds(latency * kMicro + static_cast<double>(bytes) / (bandwidth * kGiga));
  return candidate;
}

std::vector<Candidate> Model::candidates(Bytes bytes, std::optional<Algorithm> algorithm,
                                         std::optional<Protocol> protocol) const {
  std::vector<Candidate> all;
  for (const Algorithm a : kAlgorithms) {
    for (const Protocol p : kProtocols) {
      const bool wanted = a == algorithm.value_or(a) && p == protocol.value_or(p);
      if (wanted && allows(a, p)) all.push_back(rate(a, p, bytes));
    }
  }
  if (all.empty()) {
    throw ConfigError(
        {"", "/communication/protocol", "a protocol that the cluster allows",
         protocol ? to_string(*protocol) : "auto",
         "LL128 needs NVLink inside nodes and GPUDirect between them; NVLS is Simple; "
         "EFA and TCPX have no LL"});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
  return all;
}

bool is_ring_only(OpType op) noexcept {
  return op == OpType::kBroadcast || op == OpType::kAllgather || op == OpType::kReduce ||
         op == OpType::kReduceScatter;
}

double ring_passes(OpType op, int ranks) noexcept {
  const double others = std::max(ranks - 1, 1);
  if (op == OpType::kAllgather) return others;
  if (op == OpType::kReduceScatter) return others / ranks;
  return 1;  // of a broadcast or reduce
}

Candidate Model::choose_ring(Bytes bytes, OpType op) const {
  // All take n-1 steps, half of an all-reduce's.
  Candidate best;
  bool first = true;
  for (const Protocol protocol : kProtocols) {
    if (!allows(Algorithm::kRing, protocol)) continue;
    Candidate candidate = rate(Algorithm::kRing, protocol, bytes);
    const double bus = bus_gbps(Algorithm::kRing, protocol) * kGiga;
    candidate.bandwidth = {bus / ring_passes(op, ranks_)};
    candidate.latency = candidate.latency / 2;
    candidate.time =
        candidate.latency + Seconds(static_cast<double>(bytes) / candidate.bandwidth.value);
    if (first || candidate.time < best.time) best = candidate;
    first = false;
  }
  return best;
}

std::string explain(const Model& model, Bytes bytes, const Candidate& chosen, const Mover& mover) {
  std::string text = fmt::format("{:<10} {:<7} {:>12} {:>12} {:>9} {:>9}\n", "algorithm", "proto",
                                 "latency us", "GB/s", "NCCL us", "moves us");
  for (const Candidate& c : model.candidates(bytes)) {
    const bool taken = c.algorithm == chosen.algorithm && c.protocol == chosen.protocol;
    text += fmt::format("{:<10} {:<7} {:>12.1f} {:>12.1f} {:>9.1f} {:>9.1f}{}\n",
                        to_string(c.algorithm), to_string(c.protocol), c.latency.count() / kMicro,
                        c.bandwidth.value / kGiga, c.time.count() / kMicro,
                        mover(c).count() / kMicro, taken ? "  <- chosen" : "");
  }
  return text;
}

}  // namespace gradsync::nccl
