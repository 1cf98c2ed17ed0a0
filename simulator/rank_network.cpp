#include "simulator/rank_network.hpp"

namespace gradsync {

std::function<void()> RankNetwork::unless_closed(std::function<void()> event) {
  return [this, run = std::move(event)] {
    if (!closed_) run();
  };
}

void RankNetwork::send(int from, int to, Bytes bytes, std::function<void()> arrived) {
  const Seconds delay = latency(from, to);
  if (bytes == 0) {
    after(delay, std::move(arrived));
    return;
  }
  transfer(from, to, static_cast<double>(bytes), [this, delay, run = std::move(arrived)] {
    if (delay.count() > 0) {
      after(delay, run);
    } else {
      run();
    }
  });
}

void RankNetwork::transfer(int from, int to, double bytes, std::function<void()> left) {
  const auto [source, target] = platform_->ends(job_rank(from), job_rank(to));
  engine_->transfer(source, target, bytes, unless_closed(std::move(left)));
}

void RankNetwork::after(Seconds delay, std::function<void()> event) {
  engine_->after(delay, unless_closed(std::move(event)));
}

Seconds RankNetwork::latency(int from, int to) {
  const std::int64_t way = (static_cast<std::int64_t>(from) << 32) | to;
  const auto known = latencies_.find(way);
  if (known != latencies_.end()) return known->second;
  return latencies_[way] = platform_->latency(job_rank(from), job_rank(to));
}

}  // namespace gradsync
