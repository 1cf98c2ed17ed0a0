#include "gradsync/simulator/collective/plan_collective.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "gradsync/comm/reduce_functions.hpp"
#include "gradsync/comm/ring_plan.hpp"
#include "gradsync/simulator/plan/edge_times.hpp"

namespace gradsync {

PlanCollective::PlanCollective(const Context& context, std::shared_ptr<const Plan> plan,
                               const CollectiveRecord& record)
    : Collective(context), plan_(std::move(plan)), record_(record) {}

double PlanCollective::wire_bytes(double share) const {
  return static_cast<double>(record_.bytes) * share * plan_->wire_factor;
}

void PlanCollective::reduce() {
  if (reduced_ || !reduces(record_.op)) return;
  reduced_ = true;
  std::vector<std::byte*> data;
  for (int rank = 0; rank < ranks(); ++rank) {
    data.push_back(has_joined(rank) ? operation(rank).output.data() : nullptr);
  }
  if (std::find(data.begin(), data.end(), nullptr) != data.end()) return;
  const ReduceFunction function = reduce_function(record_.reduce_op, record_.dtype);
  if (plan_->gloo_ring_sums) {
    const std::size_t element = element_size(record_.dtype);
    reduce_in_ring_order(RingPlan(record_.bytes, element, ranks()), data, function, element);
    return;
  }
  const auto bytes = static_cast<std::size_t>(record_.bytes);
  const std::size_t elements = bytes / element_size(record_.dtype);
  std::vector<std::byte> sum(data[0], data[0] + bytes);
  for (int like = 1; like < alike(); ++like) {
    function(sum.data(), sum.data(), data[0], elements);
  }
  for (std::size_t rank = 1; rank < data.size(); ++rank) {
    function(sum.data(), sum.data(), data[rank], elements);
  }
  for (std::byte* target : data) std::memcpy(target, sum.data(), bytes);
}

void PlanCollective::deliver(int rank) {
  // Of a reduce, the other ranks may be done before all have joined.
  if (record_.op == OpType::kReduce && rank != record_.root && record_.root < ranks()) return;
  reduce();
  std::byte* to = operation(rank).output.defined() ? operation(rank).output.data() : nullptr;
  if (to == nullptr) return;
  const auto bytes = static_cast<std::size_t>(record_.bytes);
  if (record_.op == OpType::kBroadcast && rank != record_.root && record_.root < ranks()) {
    const std::byte* from = operation(record_.root).output.data();
    if (from != nullptr) std::memcpy(to, from, bytes);
  }
  if (record_.op != OpType::kAllgather) return;
  for (int like = 1; like < alike(); ++like) std::memcpy(to + index(like) * bytes, to, bytes);
  for (int owner = 0; owner < ranks(); ++owner) {
    const std::byte* from = operation(owner).output.data();
    if (owner != rank && from != nullptr) {
      std::memcpy(to + index(owner) * bytes, from + index(owner) * bytes, bytes);
    }
  }
}

void PlanCollective::deliver_to_all() {
  for (int rank = 0; rank < ranks(); ++rank) deliver(rank);
  for (int rank = 0; rank < ranks(); ++rank) complete(rank);
}

MessageCollective::MessageCollective(const Context& context,
                                     std::shared_ptr<const Plan> shared_plan,
                                     const CollectiveRecord& first)
    : PlanCollective(context, std::move(shared_plan), first),
      states_(index(ranks())),
      edges_of_(index(ranks())),
      edges_to_(index(ranks())) {
  const std::vector<PlanPhase>& phases = plan().phases();
  for (RankState& state : states_) state.incoming.resize(phases.size());
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const int messages = plan().messages(phases[p], first.bytes);
    edges_.emplace_back(phases[p].edges.size());
    for (std::size_t e = 0; e < phases[p].edges.size(); ++e) {
      const PlanEdge& edge = phases[p].edges[e];
      for (const int before : edge.after) {
        edges_[p][static_cast<std::size_t>(before)].next.push_back(static_cast<int>(e));
      }
      edges_of_[index(edge.from)].emplace_back(p, static_cast<int>(e));
      edges_to_[index(edge.to)].emplace_back(p, static_cast<int>(e));
      states_[index(edge.to)].incoming[p] += messages;
      states_[index(edge.from)].outgoing += messages;
    }
  }
}

void MessageCollective::on_join(int rank) {
  if (plan().base.count() > 0) {
    after(plan().base, [this, rank] { get_ready(rank); });
  } else {
    get_ready(rank);
  }
}

void MessageCollective::get_ready(int rank) {
  states_[index(rank)].ready = true;
  enter_phases(rank);
  try_all_of(rank);
  complete_if_done(rank);
}

void MessageCollective::try_all_of(int rank) {
  for (const auto& [phase, edge] : edges_of_[index(rank)]) try_send(phase, edge);
  for (const auto& [phase, edge] : edges_to_[index(rank)]) try_send(phase, edge);
}

void MessageCollective::enter_phases(int rank) {
  RankState& state = states_[index(rank)];
  while (state.phase + 1 < plan().phases().size() && state.incoming[state.phase] == 0)
    ++state.phase;
}

void MessageCollective::try_send(std::size_t phase, int number) {
  const PlanPhase& current = plan().phases()[phase];
  const PlanEdge& edge = current.edges[static_cast<std::size_t>(number)];
  EdgeState& state = edges_[phase][static_cast<std::size_t>(number)];
  const int messages = plan().messages(current, record().bytes);
  // Both ends must have reached this phase: a receiver that has not cannot accept data.
  const auto is_there = [&](int rank) {
    const RankState& end = states_[index(rank)];
    return end.ready && end.phase >= phase;
  };
  if (state.busy || state.sent == messages || !is_there(edge.from) || !is_there(edge.to)) return;
  const int needed = state.sent - current.lag;  // number needed of each edge before this one
  for (const int before : edge.after) {
    if (edges_[phase][static_cast<std::size_t>(before)].arrived <= needed) return;
  }
  state.busy = true;
  const double part = plan().part(current, record().bytes, state.sent);
  ++state.sent;
  const Seconds due = network().now() + part * plan().least(edge, record().bytes);
  transfer(edge.from, edge.to, std::max(1.0, wire_bytes(edge.share) * part),
           [this, phase, number, due] { sent(phase, number, due); });
}

void MessageCollective::sent(std::size_t phase, int number, Seconds due) {
  if (due > network().now()) {  // the library is slower than the wires
    after(due - network().now(), [this, phase, number] { left(phase, number); });
  } else {
    left(phase, number);
  }
}

void MessageCollective::left(std::size_t phase, int number) {
  const PlanPhase& current = plan().phases()[phase];
  const PlanEdge& edge = current.edges[static_cast<std::size_t>(number)];
  edges_[phase][static_cast<std::size_t>(number)].busy = current.in_step;  // until it has arrived
  --states_[index(edge.from)].outgoing;
  after(edge.latency, [this, phase, number] { arrive(phase, number); });
  try_send(phase, number);
  complete_if_done(edge.from);
}

void MessageCollective::arrive(std::size_t phase, int number) {
  const PlanEdge& edge = plan().phases()[phase].edges[static_cast<std::size_t>(number)];
  EdgeState& state = edges_[phase][static_cast<std::size_t>(number)];
  ++state.arrived;
  if (plan().phases()[phase].in_step) {
    state.busy = false;
    try_send(phase, number);
  }
  for (const int next : state.next) try_send(phase, next);
  if (--states_[index(edge.to)].incoming[phase] == 0) {
    enter_phases(edge.to);
    try_all_of(edge.to);
  }
  complete_if_done(edge.to);
}

void MessageCollective::complete_if_done(int rank) {
  RankState& state = states_[index(rank)];
  if (!state.ready || state.completed || state.outgoing > 0) return;
  for (const std::int64_t incoming : state.incoming) {
    if (incoming > 0) return;
  }
  state.completed = true;
  deliver(rank);
  complete(rank);
}

FlowCollective::FlowCollective(const Context& context, std::shared_ptr<const Plan> shared_plan,
                               const CollectiveRecord& first)
    : PlanCollective(context, std::move(shared_plan), first) {}

void FlowCollective::on_join(int) {
  if (++joined_ == ranks()) after(plan().base, [this] { start_phase(); });
}

void FlowCollective::start_phase() {
  if (phase_ == plan().phases().size()) {
    deliver_to_all();
    return;
  }
  begun_ = network().now();
  flow_of_.clear();
  std::map<std::pair<int, int>, std::size_t> numbers;
  std::vector<double> shares;
  for (const PlanEdge& edge : plan().phases()[phase_].edges) {
    const auto [known, is_new] = numbers.emplace(std::pair(edge.from, edge.to), shares.size());
    if (is_new) shares.push_back(0);
    shares[known->second] += edge.share;
    flow_of_.push_back(known->second);
  }
  flow_seconds_.assign(shares.size(), 0);
  flows_ = shares.size();
  if (flows_ == 0) end_phase();
  for (const auto& [ends, number] : numbers) {
    transfer(ends.first, ends.second, std::max(1.0, wire_bytes(shares[number])),
             [this, number = number] {
               flow_seconds_[number] = (network().now() - begun_).count();
               if (--flows_ == 0) end_phase();
             });
  }
}

void FlowCollective::end_phase() {
  const PlanPhase& phase = plan().phases()[phase_++];
  // The plan determines how the edges share the links; the flows, which also share them with
  // others, how long that takes.
  EdgeTimes times;
  if (phase.ring_size == 0 && !phase.in_step) {
    times = edge_times(
        phase, wire_bytes(1),
        [this](int from, int to, std::vector<std::size_t>& links) {
          const LinkLoads::Way& way = network().links(from, to);
          links.assign(way.begin(), way.end());
        },
        [this](std::size_t link) { return network().loads().bandwidth(link); });
  }
  times.shared.clear();
  for (const std::size_t flow : flow_of_) times.shared.push_back(flow_seconds_[flow]);
  const Seconds duration = plan().duration(phase, record().bytes, times);
  after(begun_ + duration - network().now(), [this] { start_phase(); });
}

TimedCollective::TimedCollective(const Context& context, std::shared_ptr<const Plan> shared_plan,
                                 const CollectiveRecord& first, Seconds duration,
                                 Seconds& network_free)
    : PlanCollective(context, std::move(shared_plan), first),
      duration_(duration),
      network_free_(&network_free) {}

void TimedCollective::on_join(int) {
  if (++joined_ < ranks()) return;
  const Seconds begin = std::max(*network_free_, network().now());
  *network_free_ = begin + duration_;
  after(*network_free_ - network().now(), [this] { deliver_to_all(); });
}

}  // namespace gradsync
