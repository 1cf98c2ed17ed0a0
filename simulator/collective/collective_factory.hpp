#pragma once

#include <memory>

#include "gradsync/simulator/collective/analytic.hpp"
#include "gradsync/simulator/collective/collective.hpp"
#include "gradsync/simulator/plan/planner.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Creates the collectives of one simulated job: the library's plan at the fidelity of the run.
class CollectiveFactory {
 public:
  /// `fidelity` must not be kAuto. kAnalytic uses `links`, which must outlive the factory.
  CollectiveFactory(const ClusterSpec& cluster, const CommunicationSpec& communication, int ranks,
                    Fidelity fidelity, Links* links, WireLatency wire);

  int ranks() const noexcept { return ranks_; }
  /// Fixed software overhead of a collective.
  Seconds per_operation() const noexcept { return per_operation_; }
  const Planner& planner() const noexcept { return planner_; }

  /// Whether sends and receives run beside the collectives, as Gloo's do. NCCL's are in the same
  /// stream.
  bool has_message_lanes() const noexcept { return has_message_lanes_; }

  /// Creates the collective described by `first`, the record of the first rank to arrive.
  std::shared_ptr<Collective> make(const Collective::Context& context,
                                   const CollectiveRecord& first);

 private:
  std::shared_ptr<Collective> make_planned(const Collective::Context& context,
                                           const CollectiveRecord& first);

  int ranks_;
  Fidelity fidelity_;
  bool has_message_lanes_;
  Seconds per_operation_;
  Planner planner_;
  std::optional<AnalyticTimer> timer_;
  Seconds network_free_{0};
};

}  // namespace gradsync
