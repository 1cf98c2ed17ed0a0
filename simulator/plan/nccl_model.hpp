#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/core/units.hpp"
#include "gradsync/simulator/plan/nccl_constants.hpp"

namespace gradsync::nccl {

/// The channels found by NCCL's graph search, each a ring (or tree) of its own.
struct Graph {
  int channels = 1;
  double intra_gbps = 0;  ///< GB/s per channel inside a node
  double inter_gbps = 0;  ///< GB/s per channel between nodes
};

/// One way to run a collective, as rated by NCCL's model.
struct Candidate {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  Seconds latency{0};
  BytesPerSecond bandwidth;  ///< message size / time without latency, before tree corrections
  Seconds time{0};           ///< NCCL's estimate
  int channels = 1;          ///< reduced for small messages
  double lanes = 1;          ///< channels before they are rounded to a whole number
  double width = 1;          ///< threads per channel, relative to those of the measured limits
};

/// Broadcasts, reduces, all-gathers and reduce-scatters; all-reduces have other algorithms too.
bool is_ring_only(OpType op) noexcept;
/// How many times each link of the ring carries the bytes of the record: the input of the
/// operation.
double ring_passes(OpType op, int ranks) noexcept;

/// NCCL's own choice of algorithm and protocol (src/graph/tuning.cc, updateCollCostTable and
/// topoGetAlgoInfo in src/enqueue.cc, v2.30.7):
///
/// time(S) = latency + S / bandwidth,   the minimum over all that the machines allow
///
/// with latency and bandwidth from the constants of nccl_constants.hpp and the graph. The model is
/// only a selector: at the sizes of gradient buckets it is 20 to 60 % below measured times. The
/// simulator asks it what NCCL would choose, and then times that choice on the simulated network.
///
/// Instead of searching for the graph, the model uses what NCCL is known to find: on a node with
/// NVSwitch, 12 channels (6 on Volta and in a cube mesh) that share the GPU's bandwidth; between
/// nodes, one channel per network adapter, at the best speed of NCCL's list that adapter and GPU
/// can sustain; for the tree over two nodes, up to twice that speed inside them.
class Model {
 public:
  Model(const ClusterSpec& cluster, int ranks);

  const Graph& ring_graph() const noexcept { return ring_; }
  int nodes() const noexcept { return nodes_; }
  int ranks_per_node() const noexcept { return per_node_; }

  /// Whether NCCL would consider it on this cluster, with the settings of the network's plugin.
  bool allows(Algorithm algorithm, Protocol protocol) const;
  /// Everything NCCL considers for an all-reduce of `bytes` with this algorithm and protocol (any
  /// if unset), fastest first by its own estimate. Throws ConfigError if the machines allow none.
  std::vector<Candidate> candidates(Bytes bytes, std::optional<Algorithm> algorithm = {},
                                    std::optional<Protocol> protocol = {}) const;
  /// Operations that use a ring: `is_ring_only`.
  Candidate choose_ring(Bytes bytes, OpType op) const;

  /// Latency of one hop, excluding the wire's own.
  Seconds hop_latency(Algorithm algorithm, Protocol protocol, bool between_nodes) const;
  Seconds base_latency(Algorithm algorithm, Protocol protocol) const;
  /// The most bytes of a message per second that NCCL's kernels move, by its authors' measurement
  /// of one channel: of trees with LL128 and Simple, and of rings with LL128. Otherwise infinite.
  double kernel_limit(const Candidate& way) const;
  /// Bytes on the wire per byte of data.
  static double wire_factor(Protocol protocol) noexcept;

 private:
  bool network_allows(Protocol protocol) const;
  Candidate rate(Algorithm algorithm, Protocol protocol, Bytes bytes) const;
  double bus_gbps(Algorithm algorithm, Protocol protocol) const;
  double latency_us(Algorithm algorithm, Protocol protocol) const;
  double lanes(Algorithm algorithm, Protocol protocol, Bytes bytes) const;
  bool has_narrow_channels(Protocol protocol) const;
  std::size_t nodes_column() const noexcept;

  ClusterSpec cluster_;
  int ranks_;
  int nodes_;
  int per_node_;
  Graph ring_;
  Graph tree_;
  Graph nvls_;
};

/// The time that the simulator predicts for a candidate.
using Mover = std::function<Seconds(const Candidate&)>;

/// The candidates as a human-readable table, with the chosen one marked.
std::string explain(const Model& model, Bytes bytes, const Candidate& chosen, const Mover& mover);

}  // namespace gradsync::nccl
