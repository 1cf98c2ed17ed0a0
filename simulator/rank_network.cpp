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
  const LinkLoads::Way& links = way(from, to).links;
  const Seconds closed = loads_->time_to_open(links);
  if (closed > Seconds{0}) {
    return after(closed, [this, from, to, bytes, run = std::move(left)]() mutable {
      transfer(from, to, bytes, std::move(run));
    });
  }
  const auto [source, target] = platform_->ends(job_rank(from), job_rank(to));
  loads_->add(links, bytes);
  engine_->transfer(source, target, bytes, unless_closed(std::move(left)));
}

void RankNetwork::after(Seconds delay, std::function<void()> event) {
  engine_->after(delay, unless_closed(std::move(event)));
}

const RankNetwork::Way& RankNetwork::way(int from, int to) {
  const auto [known, is_new] =
      ways_.try_emplace((static_cast<std::int64_t>(from) << 32) | to, Way{});
  if (is_new) {
    known->second.latency = platform_->latency(job_rank(from), job_rank(to));
    known->second.links = loads_->way(platform_->route(job_rank(from), job_rank(to)));
  }
  return known->second;
}

}  // namespace gradsync
