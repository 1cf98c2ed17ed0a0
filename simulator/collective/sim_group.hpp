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
#include "gradsync/simulator/plan/gpu_costs.hpp"

namespace gradsync {

/// State shared by all ranks of a simulated process group: the collectives issued by each rank, the
/// collectives in flight, and the first failure.
///
/// Each rank has a queue, like the communication thread of a Gloo process: its collectives start in
/// issue order, at most `communication_threads` at a time, while the rank's actor continues.
/// Messages that need a late rank wait for it.
class SimGroup {
 public:
  struct Options : GroupOptions {
    int communication_threads = 1;
    /// Creates the factory for the collectives of a subgroup, on its network.
    std::function<std::unique_ptr<CollectiveFactory>(int ranks, RankNetwork& network)>
        collectives_of = {};
    std::vector<int> members = {};  ///< of a subgroup: job ranks of its members
    /// By job rank, shared by all groups; empty: no device has a limit.
    std::vector<std::shared_ptr<DeviceSlots>> device_slots = {};
    GpuCosts gpu_costs = {};  ///< of the copies between gradients and buckets
  };
  /// Why the group is no longer usable.
  struct Failure {
    ErrorCode code = ErrorCode::kInternal;  ///< error code on ranks that did nothing wrong
    std::string cause;
  };

  /// Ranks 0 to `present` - 1 have an actor. If `collectives` has more ranks, these represent the
  /// others, which behave identically.
  SimGroup(SimEngine& engine, RankNetwork& network, CollectiveFactory& collectives, int present,
           Options options);

  /// The subgroup of this group's `members` with this name, created on first request. It shares
  /// waits and failures with this group, which is the job's.
  SimGroup& subgroup(const std::string& name, const std::vector<int>& members);
  /// On the rank's actor: returns when all ranks have called it. Call it once.
  void assemble(int rank);
  /// On the rank's actor: returns when the job has failed, possibly never.
  Failure wait_for_failure(int rank);
  /// Converts a rank of this group to its rank in the job.
  int job_rank(int rank) const { return network_->job_rank(rank); }

  const Options& options() const noexcept { return options_; }
  /// Ranks of the job.
  int size() const noexcept { return collectives_->ranks(); }

  /// Call before the first collective of `rank`.
  void enrol(int rank, FlightRecorder& recorder);

  /// On the rank's actor. Returns immediately.
  void issue(const OperationPtr& operation);
  /// On the rank's actor: returns when the result is ready; throws CommError.
  void wait(Operation& operation);
  /// Whether `wait` would return or throw immediately.
  bool is_over(const Operation& operation) const;
  /// On the rank's actor: see ProcessGroup::shutdown.
  void shutdown(int rank);

  /// From any context: the first failure ends all pending and later collectives on every rank.
  /// Ranks learn of it at the current time.
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
  /// On the rank's actor: increments `count` and waits until all ranks have.
  void wait_for_all(int rank, int& count, const char* what, Phase phase);
  void end_all(const Failure& failure);
  /// Null if the rank's device has no limit.
  DeviceSlots* slots_of(int rank) const;
  void start_next(int rank);
  void start(const OperationPtr& operation);
  void completed(Operation& operation);
  [[noreturn]] void throw_failure(const Operation& operation) const;
  [[noreturn]] void throw_timeout(const Operation& operation);

  SimEngine* engine_;
  std::unique_ptr<RankNetwork> own_network_;            // of a subgroup
  std::unique_ptr<CollectiveFactory> own_collectives_;  // of a subgroup
  RankNetwork* network_;
  CollectiveFactory* collectives_;
  Options options_;
  std::shared_ptr<WaitingRoom> waiting_room_;  // of the job, with a seat per job rank
  SimGroup* parent_ = nullptr;
  std::map<std::string, std::unique_ptr<SimGroup>> subgroups_;
  std::vector<Member> members_;               // by rank
  std::map<std::int64_t, Meeting> meetings_;  // by sequence number; in flight
  int ranks_done_ = 0;
  int ranks_assembled_ = 0;
  std::optional<Failure> failure_;
};

}  // namespace gradsync
