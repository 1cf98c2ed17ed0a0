#include "simulator/rank_network.hpp"

namespace gradsync {

std::function<void()> RankNetwork::unless_closed(std::function<void()> event) {
  return [this, run = std::move(event)] {
    if (!closed_) run();
  };
}

void RankNetwork::send(int from, int to, Bytes bytes, std::function<void()> arrived) {
  if (bytes == 0) {
    engine_->after(latency(from, to), unless_closed(std::move(arrived)));
  } else {
    engine_->transfer(platform_->host(from), platform_->host(to), bytes,
                      unless_closed(std::move(arrived)));
  }
}

void RankNetwork::after(Seconds delay, std::function<void()> event) {
  engine_->after(delay, unless_closed(std::move(event)));
}

Seconds RankNetwork::latency(int from, int to) {
  const std::int64_t way = (static_cast<std::int64_t>(from) << 32) | to;
  const auto known = latencies_.find(way);
  if (known != latencies_.end()) return known->second;
  return latencies_[way] = platform_->latency(from, to);
}

}  // namespace gradsync
