#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/core/units.hpp"
#include "gradsync/simulator/plan/nccl_constants.hpp"

namespace gradsync::nccl {

/// The channels that NCCL's search lays over the machines: each a ring (or tree) of its own.
struct Graph {
  int channels = 1;
  double intra_gbps = 0;  ///< GB/s of a channel inside a node
  double inter_gbps = 0;  ///< GB/s of a channel between nodes
};

/// One way to do a collective, as NCCL's model rates it.
struct Candidate {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  Seconds latency{0};
  BytesPerSecond bandwidth;  ///< message size by time without latency, before tree corrections
  Seconds time{0};           ///< NCCL's estimate
  int channels = 1;          ///< after trimming for small messages
  double lanes = 1;          ///< channels before they are rounded up to a whole number
};

/// NCCL's own choice of algorithm and protocol (src/graph/tuning.cc, updateCollCostTable and
/// topoGetAlgoInfo in src/enqueue.cc, v2.30.7):
///
///     time(S) = latency + S / bandwidth,   the least of all that the machines allow
///
/// with latency and bandwidth from the constants of nccl_constants.hpp and the graph. The model is
/// a selector: at the sizes of gradient buckets it is 20 to 60 % short of measured times. The
/// simulator asks it what NCCL would do, and then times that on the simulated wires.
///
/// The graph is not searched for but taken from what NCCL is known to find: on a node with NVSwitch
/// 12 channels (6 on Volta and in a cube mesh) that share the GPU's bandwidth; between nodes one a
/// network adapter, at the best speed of NCCL's list that adapter and GPU can keep up; for the tree
/// of two nodes up to twice as much inside them.
class Model {
 public:
  Model(const ClusterSpec& cluster, int ranks);

  const Graph& ring_graph() const noexcept { return ring_; }
  int nodes() const noexcept { return nodes_; }
  int ranks_per_node() const noexcept { return per_node_; }

  /// Whether NCCL would consider it here, with the settings that the network's plugin makes.
  bool allows(Algorithm algorithm, Protocol protocol) const;
  /// All that it considers for an all-reduce of `bytes` with this algorithm and protocol (any,
  /// where unset), by its estimate fastest first. Throws ConfigError where the machines allow none.
  std::vector<Candidate> candidates(Bytes bytes, std::optional<Algorithm> algorithm = {},
                                    std::optional<Protocol> protocol = {}) const;
  /// Broadcasts and all-gathers go in a ring.
  Candidate choose_ring(Bytes bytes, OpType op) const;

  /// Of one hop, without the wire's own latency.
  Seconds hop_latency(Algorithm algorithm, Protocol protocol, bool between_nodes) const;
  Seconds base_latency(Algorithm algorithm, Protocol protocol) const;
  /// Bytes of a message a second that NCCL's kernels move at most, as its authors measured it for
  /// each channel: of trees with LL128 and Simple, and of rings with LL128. Infinite for others.
  double kernel_limit(const Candidate& way) const;
  /// Bytes on the wire for each byte of data.
  static double wire_factor(Protocol protocol) noexcept;

 private:
  bool network_allows(Protocol protocol) const;
  Candidate rate(Algorithm algorithm, Protocol protocol, Bytes bytes) const;
  double bus_gbps(Algorithm algorithm, Protocol protocol) const;
  double latency_us(Algorithm algorithm, Protocol protocol) const;
  double lanes(Algorithm algorithm, Protocol protocol, Bytes bytes) const;
  std::size_t nodes_column() const noexcept;

  ClusterSpec cluster_;
  int ranks_;
  int nodes_;
  int per_node_;
  Graph ring_;
  Graph tree_;
  Graph nvls_;
};

/// What the simulator thinks that a candidate would take.
using Mover = std::function<Seconds(const Candidate&)>;

/// The candidates as a table for people, with what was chosen marked.
std::string explain(const Model& model, Bytes bytes, const Candidate& chosen, const Mover& mover);

}  // namespace gradsync::nccl
