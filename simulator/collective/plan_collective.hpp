#pragma once

#include <memory>
#include <vector>

#include "gradsync/simulator/collective/collective.hpp"
#include "gradsync/simulator/plan/plan.hpp"

namespace gradsync {

/// A collective that follows a plan. Its values: an all-reduce adds up in the order of the ranks,
/// whatever way its messages take; they are handed out when the first rank is done, which for an
/// all-reduce no rank is before all have joined.
class PlanCollective : public Collective {
 protected:
  PlanCollective(const Context& context, std::shared_ptr<const Plan> plan,
                 const CollectiveRecord& record);

  const Plan& plan() const noexcept { return *plan_; }
  const CollectiveRecord& record() const noexcept { return record_; }
  /// On the wire, of an edge with this share.
  double wire_bytes(double share) const;
  /// Hands out the values: to one rank, that is done.
  void deliver(int rank);
  void deliver_to_all();

 private:
  void reduce();

  std::shared_ptr<const Plan> plan_;
  CollectiveRecord record_;
  bool reduced_ = false;
};

/// Every message of the plan. An edge sends one after the other: the next leaves when the last byte
/// of the one before has left, and what it passes on has arrived.
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
  void sent(std::size_t phase, int edge, Seconds begun);
  void left(std::size_t phase, int edge);
  void arrive(std::size_t phase, int edge);
  void enter_phases(int rank);
  void complete_if_done(int rank);

  std::vector<std::vector<EdgeState>> edges_;  // by phase
  std::vector<RankState> states_;
  std::vector<std::vector<std::pair<std::size_t, int>>> edges_of_;  // by rank: phase, edge from it
  std::vector<std::vector<std::pair<std::size_t, int>>> edges_to_;
};

/// One flow for all messages from one rank to another, phase by phase; all ranks are done at the
/// same instant.
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
  std::size_t flows_ = 0;             // under way
  std::vector<std::size_t> flow_of_;  // by edge of the phase
  std::vector<double> flow_seconds_;  // by flow
  int joined_ = 0;
  Seconds begun_{0};
};

/// Takes a time that was worked out beforehand, from when all ranks have joined. Collectives of one
/// group follow one another: what shares a network is as slow as what waits for it.
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
