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
/// By number of nodes: one, two, more.
using PerNodes = std::array<double, 3>;

/// NCCL's constants for choosing an algorithm (src/graph/tuning.cc of v2.30.7). Latencies in
/// microseconds, bandwidths in GB/s (1e9 bytes per second).
struct Latencies {
  PerProtocol base;
  PerProtocol nvlink;   ///< per hop
  PerProtocol pci;      ///< per hop
  PerProtocol network;  ///< per hop
};
const Latencies& latencies(Algorithm algorithm) noexcept;

struct Limits {
  PerNodes ll_max;              ///< all channels, LL; between nodes it depends on the CPU
  PerNodes ring_ll128_channel;  ///< per channel
  PerNodes tree_ll128_channel;  ///< per channel
  PerNodes tree_channel;        ///< per channel
  PerNodes nvls_tree_channel;   ///< per channel; 0: no known limit
  double nvls_efficiency;       ///< 0: the generation has no NVLS
  int nvlink_channels;          ///< found by the search on a node with NVSwitch
  int nvls_channels;            ///< found by the search for NVLS
  double plateau_factor;        ///< of a ring's latency across nodes, Simple, large messages
};
const Limits& limits(ClusterSpec::Generation generation) noexcept;
/// Limits of LL between nodes.
const PerNodes& ll_max_between_nodes(ClusterSpec::CpuVendor vendor) noexcept;

/// Bandwidth of a tree relative to its peak, from 64 bytes on, by powers of two.
inline constexpr std::size_t kTreeCorrections = 24;
const std::array<double, kTreeCorrections>& tree_correction(Protocol protocol) noexcept;

/// Channel speeds between nodes that the graph search tries, best first.
std::array<double, 19> network_speeds(ClusterSpec::Generation generation) noexcept;

}  // namespace gradsync::nccl
