#pragma once

#include "gradsync/simulator/plan/nccl_constants.hpp"

namespace gradsync::nccl {

/// How fast NCCL's kernels move bytes: what NCCL's own tables do not say, because they only choose.
/// Estimated once over the published tables of a generation (bench/fit_constants.py); a cluster's
/// `nccl` overrides single values.
struct Pace {
  Seconds launch{0};      ///< from the call until the first byte moves, beside NCCL's base latency
  double hop_scale = 1;   ///< multiplies NCCL's latency of a hop inside a node
  BytesPerSecond ll;      ///< bus bandwidth of LL inside a node; 0: no limit but the links'
  PerProtocol channel{};  ///< bytes of a message a second in one channel of a tree
  BytesPerSecond nvls;    ///< bytes of a message a second that one GPU moves with NVLS
  Seconds nvls_step{0};   ///< of each head in each round of NVLS
};
Pace pace(const ClusterSpec& cluster);

/// Each neighbour of a node in NVLSTree adds this to the step of a head.
inline constexpr Seconds kNvlsTreeNeighbour{1.0e-6};
/// NVLS takes this share of a GPU's links for its payload (8 x 40 GB/s of a Hopper GPU's 370.8 in
/// the graph that NCCL logs; 4 H200 at 242 GB/s).
inline constexpr double kNvlsPayload = 0.84;

/// What NCCL gets from a network between nodes.
struct NetworkPace {
  double payload = 1;    ///< of the line rate
  Seconds latency{0};    ///< of each hop, beside NCCL's own
  Seconds handshake{0};  ///< of each hop with messages of kLongMessage and more
};
inline constexpr double kLongMessage = 32 * 1024;  ///< on the wire
NetworkPace network_pace(const ClusterSpec& cluster);

/// Bytes that a channel forwards at once (src/enqueue.cc, calcCollChunking of v2.30.7).
double ring_chunk(Protocol protocol) noexcept;
double tree_chunk(Protocol protocol, double bytes, double channels, int nodes, int ranks_per_node);
/// Of a head: `concurrent` is channels times heads.
double nvls_chunk(double bytes, int concurrent);
double nvls_tree_chunk(double bytes, int concurrent, int nodes, bool short_chunks);

/// Kernels of NVLS (src/transport/nvls.cc).
int nvls_kernel_channels(ClusterSpec::Generation generation, int nodes) noexcept;

}  // namespace gradsync::nccl
