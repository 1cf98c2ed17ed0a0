#pragma once

#include <memory>
#include <vector>

#include "gradsync/simulator/collective/collective.hpp"
#include "gradsync/simulator/plan/plan.hpp"

namespace gradsync {

/// A collective that follows a plan. An all-reduce sums in rank order, whatever route its messages
/// take. Results are delivered when the first rank is done, which for an all-reduce is after all
/// ranks have joined.
class PlanCollective : public Collective {
 protected:
  PlanCollective(const Context& context, std::shared_ptr<const Plan> plan,
                 const CollectiveRecord& record);

  const Plan& plan() const noexcept { return *plan_; }
  const CollectiveRecord& record() const noexcept { return record_; }
  /// Bytes on the wire for an edge with this share.
  double wire_bytes(double share) const;
  /// Delivers the result to a rank that is done.
  void deliver(int rank);
  void deliver_to_all();

 private:
  void reduce();

  std::shared_ptr<const Plan> plan_;
  CollectiveRecord record_;
  bool reduced_ = false;
};

/// Simulates every message of the plan. An edge sends its messages in sequence: the next one leaves
/// when the last byte of the previous one has left and the data it forwards has arrived.
class MessageCollective final : public PlanCollective {
 public:
  MessageCollective(const Context& context, std::shared_ptr<const Plan> plan,
                    const CollectiveRecord& record);

 protected:
  void on_join(int rank) override;

 private:
  struct EdgeState {
    int sent = 0;
    int arrived = 0;
    bool busy = false;
    std::vector<int> next;  // edges of the phase that wait for this one
  };
  struct RankState {
    bool ready = false;
    std::size_t phase = 0;
    std::vector<std::int64_t> incoming;  // by phase: messages that have not arrived
    std::int64_t outgoing = 0;           // messages that have not left
    bool completed = false;
  };
  void get_ready(int rank);
  void try_send(std::size_t phase, int edge);
  void try_all_of(int rank);
  void sent(std::size_t phase, int edge, Seconds due);
  void left(std::size_t phase, int edge);
  void arrive(std::size_t phase, int edge);
  void enter_phases(int rank);
  void complete_if_done(int rank);

  std::vector<std::vector<EdgeState>> edges_;  // by phase
  std::vector<RankState> states_;
  std::vector<std::vector<std::pair<std::size_t, int>>> edges_of_;  // by rank: phase, edge from it
  std::vector<std::vector<std::pair<std::size_t, int>>> edges_to_;
};

/// One flow for all messages from one rank to another, phase by phase; all ranks finish at the same
/// time.
class FlowCollective final : public PlanCollective {
 public:
  FlowCollective(const Context& context, std::shared_ptr<const Plan> plan,
                 const CollectiveRecord& record);

 protected:
  void on_join(int rank) override;

 private:
  void start_phase();
  void end_phase();

  std::size_t phase_ = 0;
  std::size_t flows_ = 0;             // in flight
  std::vector<std::size_t> flow_of_;  // by edge of the phase
  std::vector<double> flow_seconds_;  // by flow
  int joined_ = 0;
  Seconds begun_{0};
};

/// Takes a precomputed time, starting when all ranks have joined. Collectives of one group run one
/// after another: sharing the network takes as long as waiting for it.
class TimedCollective final : public PlanCollective {
 public:
  TimedCollective(const Context& context, std::shared_ptr<const Plan> plan,
                  const CollectiveRecord& record, Seconds duration, Seconds& network_free);

 protected:
  void on_join(int rank) override;

 private:
  Seconds duration_;
  Seconds* network_free_;
  int joined_ = 0;
};

}  // namespace gradsync
