#include "gradsync/simulator/collective/tree_collectives.hpp"

#include <bit>
#include <cstring>

namespace gradsync {

TreeBroadcast::TreeBroadcast(const Context& context, const CollectiveRecord& record)
    : Collective(context),
      root_(record.root),
      bytes_(record.bytes),
      has_data_(index(ranks())),
      undelivered_(index(ranks())) {
  has_data_[index(root_)] = true;
  for (int rank = 0; rank < ranks(); ++rank) {
    undelivered_[index(rank)] = static_cast<int>(children(rank).size());
  }
}

std::vector<int> TreeBroadcast::children(int rank) const {
  std::vector<int> result;
  const int own = position(rank);
  for (int distance = 1; distance < ranks(); distance *= 2) {
    if (own < distance && own + distance < ranks()) result.push_back(rank_at(own + distance));
  }
  return result;
}

int TreeBroadcast::parent(int rank) const {
  const auto own = static_cast<unsigned>(position(rank));
  return rank_at(static_cast<int>(own - std::bit_floor(own)));
}

void TreeBroadcast::on_join(int rank) {
  if (rank != root_) send_down(parent(rank), rank);
  for (const int child : children(rank)) send_down(rank, child);
  complete_if_done(rank);
}

void TreeBroadcast::send_down(int from, int to) {
  if (!has_joined(from) || !has_joined(to) || !has_data_[index(from)]) return;
  send(from, to, bytes_, [this, from, to] { arrive(from, to); });
}

void TreeBroadcast::arrive(int from, int to) {
  const std::byte* source = operation(from).output.data();
  std::byte* target = operation(to).output.data();
  if (source != nullptr && target != nullptr) {
    std::memcpy(target, source, static_cast<std::size_t>(bytes_));
  }
  has_data_[index(to)] = true;
  --undelivered_[index(from)];
  for (const int child : children(to)) send_down(to, child);
  complete_if_done(from);
  complete_if_done(to);
}

void TreeBroadcast::complete_if_done(int rank) {
  if (has_data_[index(rank)] && undelivered_[index(rank)] == 0) complete(rank);
}

DisseminationBarrier::DisseminationBarrier(const Context& context)
    : Collective(context), ends_(index(ranks())) {
  while (distance(rounds_) < ranks()) ++rounds_;
  for (End& end : ends_) end.arrived.resize(static_cast<std::size_t>(rounds_));
}

void DisseminationBarrier::on_join(int rank) {
  send_what_is_due(rank);
  for (int round = 0; round < rounds_; ++round) {  // ranks waiting for this rank to join
    send_what_is_due((rank - distance(round) + ranks()) % ranks());
  }
}

void DisseminationBarrier::send_what_is_due(int rank) {
  if (!has_joined(rank)) return;
  End& end = ends_[index(rank)];
  while (end.sent < rounds_ && end.sent <= end.round && has_joined(target(rank, end.sent))) {
    const int round = end.sent++;
    const int to = target(rank, round);
    send(rank, to, 0, [this, to, round] { arrive(to, round); });
  }
}

void DisseminationBarrier::arrive(int rank, int round) {
  End& end = ends_[index(rank)];
  end.arrived[static_cast<std::size_t>(round)] = true;
  while (end.round < rounds_ && end.arrived[static_cast<std::size_t>(end.round)]) {
    ++end.round;
    send_what_is_due(rank);
    if (end.round == rounds_) complete(rank);
  }
}

}  // namespace gradsync
