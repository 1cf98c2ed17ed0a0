#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "gradsync/simulator/kernel/link_loads.hpp"
#include "gradsync/simulator/kernel/sim_engine.hpp"
#include "gradsync/simulator/kernel/transfers.hpp"
#include "gradsync/simulator/platform/platform.hpp"

namespace gradsync {

/// The network as collectives see it: messages between ranks. Kernel context only.
class RankNetwork {
 public:
  /// What passes is entered in `loads`. `members`: the ranks of the job that are meant by 0, 1,
  /// ...; empty: all, by their own numbers.
  RankNetwork(SimEngine& engine, const Platform& platform, LinkLoads& loads, Transfers& transfers,
              std::vector<int> members = {})
      : engine_(&engine),
        platform_(&platform),
        loads_(&loads),
        transfers_(&transfers),
        members_(std::move(members)) {}

  /// The number that a rank of this network has in the job.
  int job_rank(int rank) const {
    return members_.empty() ? rank : members_[static_cast<std::size_t>(rank)];
  }

  /// Starts a message and calls `arrived` when all of it is there. Without bytes it takes the way's
  /// latency; with bytes it is a flow, which shares every cable on its way.
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

  /// After a failure: what is under way no longer arrives.
  void close() noexcept { closed_ = true; }

 private:
  struct Way {
    Seconds latency{0};
    LinkLoads::Way links;
    std::vector<LossPeriod> losses;
    Seconds connection_free{0};  ///< where packets get lost: all that was sent has left by then
  };
  Way& way(int from, int to);
  /// `arrived` is called a `latency` after the last byte has left.
  void start(int from, int to, double bytes, Seconds latency, Continuation arrived);
  /// When `bytes` have left that are sent now, as far as TCP and packet loss are concerned.
  Seconds sent_in_spite_of_loss(int from, int to, double bytes);

  SimEngine* engine_;
  const Platform* platform_;
  LinkLoads* loads_;
  Transfers* transfers_;
  std::vector<int> members_;
  std::unordered_map<std::int64_t, Way> ways_;  // routes are slow to look up
  bool closed_ = false;
};

}  // namespace gradsync
