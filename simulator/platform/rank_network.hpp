#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "gradsync/simulator/kernel/link_loads.hpp"
#include "gradsync/simulator/kernel/sim_engine.hpp"
#include "gradsync/simulator/kernel/transfers.hpp"
#include "gradsync/simulator/platform/platform.hpp"

namespace gradsync {

/// The network as seen by collectives: messages between ranks. Kernel context only.
class RankNetwork {
 public:
  /// Records all traffic in `loads`. `members`: the job ranks behind 0, 1, ...; empty: all ranks
  /// with their own numbers.
  RankNetwork(SimEngine& engine, const Platform& platform, LinkLoads& loads, Transfers& transfers,
              std::vector<int> members = {})
      : engine_(&engine),
        platform_(&platform),
        loads_(&loads),
        transfers_(&transfers),
        members_(std::move(members)) {}

  /// Converts a rank of this network to its rank in the job.
  int job_rank(int rank) const {
    return members_.empty() ? rank : members_[static_cast<std::size_t>(rank)];
  }

  /// Starts a message and calls `arrived` when all of it has arrived. An empty message takes the
  /// route's latency; others are flows that share every cable on their route.
  void send(int from, int to, Bytes bytes, Continuation arrived);
  /// Starts a flow of `bytes` > 0 and calls `left` when its last byte has left; it arrives a
  /// `latency` later.
  void transfer(int from, int to, double bytes, Continuation left) {
    start(from, to, bytes, Seconds{0}, std::move(left));
  }
  /// Calls `event` after `delay`.
  void after(Seconds delay, Continuation event);
  Seconds now() const { return engine_->now(); }
  Seconds latency(int from, int to) { return way(from, to).latency; }
  /// By their numbers in `loads()`. Valid until the next call.
  const LinkLoads::Way& links(int from, int to) { return way(from, to).links; }

  const Platform& platform() const noexcept { return *platform_; }
  LinkLoads& loads() const noexcept { return *loads_; }
  Transfers& transfers() const noexcept { return *transfers_; }

  /// After a failure: messages in flight no longer arrive.
  void close() noexcept { closed_ = true; }

 private:
  struct Way {
    Seconds latency{0};
    LinkLoads::Way links;
    std::vector<LossPeriod> losses;
    Seconds connection_free{0};  ///< with packet loss: when everything sent so far has left
  };
  Way& way(int from, int to);
  /// Calls `arrived` a `latency` after the last byte has left.
  void start(int from, int to, double bytes, Seconds latency, Continuation arrived);
  /// When `bytes` that are sent now will have left, considering only TCP and packet loss.
  Seconds sent_in_spite_of_loss(int from, int to, double bytes);

  SimEngine* engine_;
  const Platform* platform_;
  LinkLoads* loads_;
  Transfers* transfers_;
  std::vector<int> members_;
  std::unordered_map<std::int64_t, Way> ways_;  // cache, because route lookup is slow
  bool closed_ = false;
};

}  // namespace gradsync
