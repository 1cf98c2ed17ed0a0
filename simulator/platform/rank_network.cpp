#include "gradsync/simulator/platform/rank_network.hpp"

#include <algorithm>

namespace gradsync {

void RankNetwork::send(int from, int to, Bytes bytes, Continuation arrived) {
  const Way& connection = way(from, to);
  if (bytes == 0 && !loads_->is_cut(connection.links)) {
    after(connection.latency, std::move(arrived));
    return;
  }
  // A message without payload still has a header, which cannot pass a link that is down.
  const double at_least_a_header = std::max(1.0, static_cast<double>(bytes));
  start(from, to, at_least_a_header, connection.latency, std::move(arrived));
}

void RankNetwork::start(int from, int to, double bytes, Seconds latency, Continuation arrived) {
  const Way& connection = way(from, to);
  const LinkLoads::Way& links = connection.links;
  const Seconds closed = loads_->time_to_open(links);
  if (closed > Seconds{0}) {
    return after(closed, {[this, from, to, bytes, latency, event = std::move(arrived)] {
                   start(from, to, bytes, latency, event);
                 }});
  }
  loads_->add(links, bytes);
  arrived.unless = &closed_;
  if (!connection.losses.empty()) {
    const Seconds sent = sent_in_spite_of_loss(from, to, bytes);
    arrived = {[this, sent, latency, event = std::move(arrived)] {
      after(std::max(Seconds{0}, sent - now()) + latency, event);
    }};
    arrived.unless = &closed_;
    latency = Seconds{0};
  }
  transfers_->start(links, platform_->ends(job_rank(from), job_rank(to)), bytes, latency,
                    std::move(arrived));
}

/// All messages from one rank to another share a connection and leave one after another.
Seconds RankNetwork::sent_in_spite_of_loss(int from, int to, double bytes) {
  const Seconds round_trip = latency(from, to) + latency(to, from);
  Way& connection = way(from, to);
  connection.connection_free =
      end_of_sending(connection.losses, round_trip, loads_->nominal_bandwidth(connection.links),
                     std::max(now(), connection.connection_free), bytes);
  return connection.connection_free;
}

void RankNetwork::after(Seconds delay, Continuation event) {
  event.unless = &closed_;
  engine_->after(delay, std::move(event));
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
