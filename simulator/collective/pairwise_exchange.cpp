#include "gradsync/simulator/collective/pairwise_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace gradsync {
namespace {

std::int64_t before(const std::vector<std::int64_t>& sizes, std::size_t rank) {
  return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank),
                         std::int64_t{0});
}

}  // namespace

PairwiseExchange::PairwiseExchange(const Context& context, const CollectiveRecord& first,
                                   MessageCost cost, AnalyticTimer* timer, Seconds& network_free)
    : Collective(context),
      op_(first.op),
      element_size_(element_size(first.dtype)),
      cost_(std::move(cost)),
      timer_(timer),
      network_free_(&network_free),
      messages_(index(ranks()), is_alltoall() ? 2 * (context.ranks - 1) : 1) {}

void PairwiseExchange::on_join(int rank) {
  if (timer_ != nullptr) {
    present_.push_back(rank);
    if (present_.size() == (is_alltoall() ? index(ranks()) : 2)) run_timed();
    return;
  }
  for (const int other : present_) {
    for (const auto& [from, to] : {std::pair(rank, other), std::pair(other, rank)}) {
      const bool sends = is_alltoall() || operation(from).record.op == OpType::kSend;
      if (sends) start({from, to, bytes_between(from, to)});
    }
  }
  present_.push_back(rank);
}

void PairwiseExchange::run_timed() {
  Seconds begin = network().now();
  const Seconds duration = closed_form();
  if (is_alltoall()) {  // an alltoall has the network to itself, as every timed collective
    begin = std::max(*network_free_, begin);
    *network_free_ = begin + duration;
  }
  after(begin + duration - network().now(), [this] {
    for (const int to : present_) {
      for (const int from : present_) {
        if (from != to && bytes_between(from, to) > 0) deliver(from, to);
      }
    }
    for (const int one : present_) complete(one);
  });
}

Bytes PairwiseExchange::bytes_between(int from, int to) const {
  const CollectiveRecord& record = operation(from).record;
  if (record.op == OpType::kSend) return record.bytes;
  if (record.op == OpType::kRecv) return 0;
  return record.splits->input[index(to)] * static_cast<Bytes>(element_size_);
}

void PairwiseExchange::start(const Message& message) {
  after(cost_.base, [this, message] {
    const auto left = [this, message] {
      after(cost_.hops.latency(message.from, message.to), [this, message] { arrive(message); });
    };
    if (message.bytes == 0) return left();
    transfer(message.from, message.to, static_cast<double>(message.bytes) * cost_.wire_factor,
             left);
  });
}

void PairwiseExchange::arrive(const Message& message) {
  if (message.bytes > 0) deliver(message.from, message.to);
  done(message.from);
  done(message.to);
}

void PairwiseExchange::done(int rank) {
  if (--messages_[index(rank)] == 0) complete(rank);
}

void PairwiseExchange::deliver(int from, int to) {
  const Operation& source = operation(from);
  const Operation& target = operation(to);
  const std::byte* data = source.input.data();
  std::byte* place = target.output.data();
  if (data == nullptr || place == nullptr) return;
  if (is_alltoall()) {
    const auto width = static_cast<std::int64_t>(element_size_);
    data += before(source.record.splits->input, index(to)) * width;
    place += before(target.record.splits->output, index(from)) * width;
  }
  std::memcpy(place, data, static_cast<std::size_t>(bytes_between(from, to)));
}

/// For an actor that stands for others, the ranks beyond the present ones send as the first does.
Seconds PairwiseExchange::closed_form() const {
  if (!is_alltoall()) {
    const bool first_sends = operation(present_[0]).record.op == OpType::kSend;
    const int from = present_[first_sends ? 0 : 1], to = present_[first_sends ? 1 : 0];
    const double bytes = static_cast<double>(bytes_between(from, to)) * cost_.wire_factor;
    return cost_.base + timer_->exchange({{from, to, bytes}}) + cost_.hops.latency(from, to);
  }
  const int all = ranks() * alike();
  std::vector<AnalyticTimer::Flow> flows;
  Seconds latency{0};
  for (int from = 0; from < all; ++from) {
    const Operation& source = operation(from < ranks() ? from : 0);
    for (int to = 0; to < all; ++to) {
      if (from == to) continue;
      const auto elements = static_cast<double>(source.record.splits->input[index(to)]);
      flows.push_back(
          {from, to, elements * static_cast<double>(element_size_) * cost_.wire_factor});
      latency = std::max(latency, cost_.hops.latency(from, to));
    }
  }
  return cost_.base + timer_->exchange(flows) + latency;
}

}  // namespace gradsync
