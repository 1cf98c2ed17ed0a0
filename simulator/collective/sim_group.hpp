#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/comm/group_options.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/simulator/collective/collective_factory.hpp"
#include "gradsync/simulator/collective/device_slots.hpp"
#include "gradsync/simulator/kernel/sim_clock.hpp"
#include "gradsync/simulator/kernel/waiting_room.hpp"

namespace gradsync {

/// What all ranks of a simulated process group share: which collectives each has issued, the
/// collectives under way, and the first failure.
///
/// Each rank has a queue, like the communication thread of a Gloo process: its collectives start in
/// the order in which they were issued, at most `communication_threads` at a time, while the rank's
/// actor goes on. A rank that is late is simply not there yet: the messages that need it wait.
class SimGroup {
 public:
  struct Options : GroupOptions {
    int communication_threads = 1;
    /// Makes the collectives of a subgroup, on its network.
    std::function<std::unique_ptr<CollectiveFactory>(int ranks, RankNetwork& network)>
        collectives_of = {};
    std::vector<int> members = {};  ///< of a subgroup: its ranks' numbers in the job
    /// By the rank's number in the job, shared by its groups; empty: all devices have room.
    std::vector<std::shared_ptr<DeviceSlots>> device_slots = {};
  };
  /// Why the group is of no use any more.
  struct Failure {
    ErrorCode code = ErrorCode::kInternal;  ///< for the ranks that did nothing wrong
    std::string cause;
  };

  /// `present` ranks, 0 and up, have an actor; where that is not all that `collectives` knows of,
  /// those that have stand for the others, which are like them in everything.
  SimGroup(SimEngine& engine, RankNetwork& network, CollectiveFactory& collectives, int present,
           Options options);

  /// The group of some of this group's ranks that has this name: made when the first of them asks
  /// for it. It shares waits and failures with this group, the job's.
  SimGroup& subgroup(const std::string& name, const std::vector<int>& members);
  /// Actor of `rank`: returns when all ranks have called it. Once.
  void assemble(int rank);
  /// Actor of `rank`: returns when the job has failed, which may be never.
  Failure wait_for_failure(int rank);
  /// The number that a rank of this group has in the job.
  int job_rank(int rank) const { return network_->job_rank(rank); }

  const Options& options() const noexcept { return options_; }
  /// Ranks of the job.
  int size() const noexcept { return collectives_->ranks(); }

  /// Before the first collective of `rank`.
  void enrol(int rank, FlightRecorder& recorder);

  /// Actor of the operation's rank. Returns at once.
  void issue(const OperationPtr& operation);
  /// Actor of the operation's rank: returns when its result is there; throws CommError.
  void wait(Operation& operation);
  /// Whether `wait` would return or throw at once.
  bool is_over(const Operation& operation) const;
  /// Actor of `rank`: see ProcessGroup::shutdown.
  void shutdown(int rank);

  /// From any context: the first failure ends what is pending or comes later on every rank. Ranks
  /// learn of it at this instant.
  void fail(const Failure& failure);

 private:
  struct Member {
    FlightRecorder* recorder = nullptr;
    std::deque<OperationPtr> queued;   // issued, not started
    std::vector<OperationPtr> active;  // started
    const Operation* awaited = nullptr;
    bool is_done = false;  // has called shutdown
  };
  struct Meeting {
    std::shared_ptr<Collective> collective;
    int first_rank;
    CollectiveRecord first_record;
    int joined = 0;
    int completed = 0;
  };

  int present() const noexcept { return static_cast<int>(members_.size()); }
  Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  SimGroup(SimGroup& parent, const std::string& name, const std::vector<int>& members);
  /// Actor of `rank`: adds one to `count` and waits until all ranks have.
  void wait_for_all(int rank, int& count, const char* what, Phase phase);
  void end_all(const Failure& failure);
  /// Null where the rank's device has room for any number of collectives.
  DeviceSlots* slots_of(int rank) const;
  void start_next(int rank);
  void start(const OperationPtr& operation);
  void completed(Operation& operation);
  [[noreturn]] void throw_failure(const Operation& operation) const;
  [[noreturn]] void throw_timeout(const Operation& operation);

  SimEngine* engine_;
  std::unique_ptr<RankNetwork> own_network_;            // a subgroup's
  std::unique_ptr<CollectiveFactory> own_collectives_;  // a subgroup's
  RankNetwork* network_;
  CollectiveFactory* collectives_;
  Options options_;
  std::shared_ptr<WaitingRoom> waiting_room_;  // of the job; seats by the job's ranks
  SimGroup* parent_ = nullptr;
  std::map<std::string, std::unique_ptr<SimGroup>> subgroups_;
  std::vector<Member> members_;               // by rank
  std::map<std::int64_t, Meeting> meetings_;  // by sequence number; those under way
  int ranks_done_ = 0;
  int ranks_assembled_ = 0;
  std::optional<Failure> failure_;
};

}  // namespace gradsync
