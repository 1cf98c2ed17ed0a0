#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/simulator/plan/message_cost.hpp"
#include "gradsync/simulator/plan/nccl_model.hpp"
#include "gradsync/simulator/plan/nccl_pace.hpp"
#include "gradsync/simulator/plan/phases.hpp"
#include "gradsync/simulator/plan/plan.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Chooses how the simulated library runs a collective, and caches the plans.
///
/// Gloo: the ring for all-reduces, unless the scenario names another algorithm; Gloo's own
/// broadcast, barrier and all-gather. NCCL: the choice of its cost model (nccl_model.hpp) within
/// what the scenario allows; a ring for broadcasts and all-gathers; a barrier is an all-reduce of 4
/// bytes. The cost model only chooses: the data then moves at the rates of the links, within the
/// pace of NCCL's kernels (nccl_pace.hpp). RCCL: in a node, each GPU sends to all others directly;
/// otherwise as NCCL.
class Planner {
 public:
  Planner(const ClusterSpec& cluster, const CommunicationSpec& communication, int ranks,
          WireLatency wire);

  /// The plan for the collective. Null with `bit_exact` if Gloo's own ring, tree and barrier are
  /// simulated message by message, in Gloo's order of summation (message_ring.hpp,
  /// tree_collectives.hpp).
  std::shared_ptr<const Plan> plan(const CollectiveRecord& record, bool bit_exact);

  /// What the library adds to the messages of an alltoall, a send and a recv.
  MessageCost message_cost(const CollectiveRecord& record) const;

  /// The explanation for each kind and size of collective, in order of first use.
  const std::vector<std::string>& explanations() const noexcept { return explanations_; }
  /// For a simulated NCCL or RCCL: "all-reduces by nccl: tree ll128, ring simple"; else empty.
  std::string summary() const;

 private:
  std::shared_ptr<const Plan> gloo_plan(const CollectiveRecord& record, bool bit_exact);
  std::shared_ptr<const Plan> nccl_plan(const CollectiveRecord& record);
  std::shared_ptr<const Plan> hierarchical_plan(const Hops& hops);
  PlanPhase nccl_phase(const CollectiveRecord& record, nccl::Algorithm algorithm,
                       const Hops& hops) const;
  nccl::Candidate choose(const CollectiveRecord& record) const;
  std::shared_ptr<const Plan> direct_plan();
  Seconds moving_time(const nccl::Candidate& way, Bytes bytes) const;
  bool sends_long_messages(const nccl::Candidate& chosen, double bytes) const;
  Hops nccl_hops(nccl::Algorithm algorithm, nccl::Protocol protocol, bool long_messages) const;
  void set_pace(Plan& plan, const nccl::Candidate& chosen, OpType op, double bytes) const;
  void pace_nvls(Plan& plan, nccl::Algorithm algorithm, double bytes) const;
  void explain(const CollectiveRecord& record, const nccl::Candidate& chosen,
               const std::string& name);
  void remember(const CollectiveRecord& record, const std::string& way);
  std::vector<std::vector<int>> rings() const;
  std::vector<std::vector<int>> node_members() const;

  ClusterSpec cluster_;
  CommunicationSpec communication_;
  Hops hops_;  // without a protocol
  std::optional<nccl::Model> model_;
  nccl::Pace pace_;
  std::map<std::string, std::shared_ptr<const Plan>> plans_;
  std::map<std::string, std::shared_ptr<const std::vector<PlanPhase>>> phases_;
  std::map<std::string, bool> explained_;
  std::vector<std::string> ways_;  // of all-reduces, in the order in which they came
  std::vector<std::string> explanations_;
};

}  // namespace gradsync
