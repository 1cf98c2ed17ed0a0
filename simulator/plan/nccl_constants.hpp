#pragma once

#include <array>
#include <cstddef>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync::nccl {

enum class Algorithm { kTree, kRing, kNvls, kNvlsTree };
enum class Protocol { kLl, kLl128, kSimple };

inline constexpr std::array kAlgorithms = {Algorithm::kTree, Algorithm::kRing, Algorithm::kNvls,
                                           Algorithm::kNvlsTree};
inline constexpr std::array kProtocols = {Protocol::kLl, Protocol::kLl128, Protocol::kSimple};
const char* to_string(Algorithm algorithm) noexcept;  ///< "tree", "ring", "nvls", "nvls_tree"
const char* to_string(Protocol protocol) noexcept;    ///< "ll", "ll128", "simple"

/// By protocol.
using PerProtocol = std::array<double, 3>;
/// By the number of nodes: one, two, more.
using PerNodes = std::array<double, 3>;

/// NCCL's constants for choosing an algorithm (src/graph/tuning.cc of v2.30.7). Latencies in
/// microseconds, bandwidths in GB/s (1e9 bytes a second).
struct Latencies {
  PerProtocol base;
  PerProtocol nvlink;   ///< of a hop
  PerProtocol pci;      ///< of a hop
  PerProtocol network;  ///< of a hop
};
const Latencies& latencies(Algorithm algorithm) noexcept;

struct Limits {
  PerNodes ll_max;              ///< all channels, LL; between nodes it goes by the CPU instead
  PerNodes ring_ll128_channel;  ///< each channel
  PerNodes tree_ll128_channel;  ///< each channel
  PerNodes tree_channel;        ///< each channel
  PerNodes nvls_tree_channel;   ///< each channel; 0: no limit known
  double nvls_efficiency;       ///< 0: the generation has no NVLS
  int nvlink_channels;          ///< that the search finds on a node with NVSwitch
  int nvls_channels;            ///< that the search finds for NVLS
  double plateau_factor;        ///< of a ring's latency across nodes, Simple, large messages
};
const Limits& limits(ClusterSpec::Generation generation) noexcept;
/// Of LL between nodes.
const PerNodes& ll_max_between_nodes(ClusterSpec::CpuVendor vendor) noexcept;

/// Bandwidth of a tree relative to its peak, from 64 bytes on, by powers of two.
inline constexpr std::size_t kTreeCorrections = 24;
const std::array<double, kTreeCorrections>& tree_correction(Protocol protocol) noexcept;

/// Speeds of a channel between nodes that the graph search tries, best first.
std::array<double, 19> network_speeds(ClusterSpec::Generation generation) noexcept;

}  // namespace gradsync::nccl
