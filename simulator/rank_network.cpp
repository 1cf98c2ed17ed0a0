#include "simulator/rank_network.hpp"

#include <algorithm>

namespace gradsync {

std::function<void()> RankNetwork::unless_closed(std::function<void()> event) {
  return [this, run = std::move(event)] {
    if (!closed_) run();
  };
}

void RankNetwork::send(int from, int to, Bytes bytes, std::function<void()> arrived) {
  const Seconds delay = latency(from, to);
  if (bytes == 0 && !loads_->is_cut(way(from, to).links)) {
    after(delay, std::move(arrived));
    return;
  }
  // What is empty to its program has a header, which passes no link that is down.
  const double at_least_a_header = std::max(1.0, static_cast<double>(bytes));
  transfer(from, to, at_least_a_header, [this, delay, run = std::move(arrived)] {
    if (delay.count() > 0) {
      after(delay, run);
    } else {
      run();
    }
  });
}

void RankNetwork::transfer(int from, int to, double bytes, std::function<void()> left) {
  const Way& connection = way(from, to);
  const LinkLoads::Way& links = connection.links;
  const Seconds closed = loads_->time_to_open(links);
  if (closed > Seconds{0}) {
    return after(closed, [this, from, to, bytes, run = std::move(left)]() mutable {
      transfer(from, to, bytes, std::move(run));
    });
  }
  const auto ends = platform_->ends(job_rank(from), job_rank(to));
  loads_->add(links, bytes);
  if (!connection.losses.empty()) {
    const Seconds sent = sent_in_spite_of_loss(from, to, bytes);
    left = [this, sent, run = std::move(left)] {
      if (sent > now()) {
        after(sent - now(), run);
      } else {
        run();
      }
    };
  }
  loads_->start_flow(links, [&] {
    engine_->transfer(ends.first, ends.second, bytes, unless_closed(std::move(left)));
  });
}

/// All messages from one rank to another share a connection and leave one after the other.
Seconds RankNetwork::sent_in_spite_of_loss(int from, int to, double bytes) {
  const Seconds round_trip = latency(from, to) + latency(to, from);
  Way& connection = way(from, to);
  connection.connection_free =
      end_of_sending(connection.losses, round_trip, loads_->nominal_bandwidth(connection.links),
                     std::max(now(), connection.connection_free), bytes);
  return connection.connection_free;
}

void RankNetwork::after(Seconds delay, std::function<void()> event) {
  engine_->after(delay, unless_closed(std::move(event)));
}

RankNetwork::Way& RankNetwork::way(int from, int to) {
  const auto [known, is_new] =
      ways_.try_emplace((static_cast<std::int64_t>(from) << 32) | to, Way{});
  if (is_new) {
    known->second.latency = platform_->latency(job_rank(from), job_rank(to));
    known->second.links = loads_->way(platform_->route(job_rank(from), job_rank(to)));
    known->second.losses = loads_->losses(known->second.links);
  }
  return known->second;
}

}  // namespace gradsync
