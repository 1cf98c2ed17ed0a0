#pragma once

#include <vector>

#include "gradsync/simulator/collective/collective.hpp"

namespace gradsync {

/// Gloo's broadcast (gloo/broadcast.cc): a binomial tree over the ranks, counted from the root. In
/// round i the first 2^i ranks, which have the data, each send all of it to the rank 2^i further
/// on; a rank starts its sends together as soon as it has the data. Uncontended, it takes ceil(log2
/// n) * a + (the sends that share the root's cable) * S / b.
class TreeBroadcast final : public Collective {
 public:
  TreeBroadcast(const Context& context, const CollectiveRecord& record);

 protected:
  void on_join(int rank) override;

 private:
  int position(int rank) const noexcept { return (rank - root_ + ranks()) % ranks(); }
  int rank_at(int position) const noexcept { return (position + root_) % ranks(); }
  std::vector<int> children(int rank) const;
  int parent(int rank) const;
  void send_down(int from, int to);
  void arrive(int from, int to);
  void complete_if_done(int rank);

  int root_;
  Bytes bytes_;
  std::vector<bool> has_data_;
  std::vector<int> undelivered_;  // by rank: children that have not received
};

/// Gloo's barrier (gloo/barrier.cc) by dissemination: in round i each rank sends an empty message
/// to rank + 2^i and waits for the message of rank - 2^i; ceil(log2 n) rounds of one latency.
class DisseminationBarrier final : public Collective {
 public:
  explicit DisseminationBarrier(const Context& context);

 protected:
  void on_join(int rank) override;

 private:
  void send_what_is_due(int rank);
  void arrive(int rank, int round);
  int distance(int round) const noexcept { return 1 << round; }
  int target(int rank, int round) const noexcept { return (rank + distance(round)) % ranks(); }

  struct End {
    int round = 0;              // current round
    int sent = 0;               // number of rounds whose message has left
    std::vector<bool> arrived;  // by round
  };
  int rounds_ = 0;
  std::vector<End> ends_;
};

}  // namespace gradsync
