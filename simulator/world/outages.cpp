#include "gradsync/simulator/world/outages.hpp"

#include <utility>

#include <fmt/format.h>

namespace gradsync {

Outages::Outages(SimEngine& engine, const Platform& platform, int actors, Died died)
    : engine_(engine), platform_(platform), actors_(actors), died_(std::move(died)) {
  engine.on_outage([this](const auto& host) { host_changed(host); },
                   [this](const auto& link) { link_changed(link); });
}

std::optional<Seconds> Outages::death(int rank) const {
  const auto found = deaths_.find(rank);
  return found == deaths_.end() ? std::nullopt : std::optional(found->second);
}

void Outages::host_changed(const simgrid_compat::s4u::Host& host) {
  note(fmt::format("host {}", host.get_cname()), host.is_on());
  if (host.is_on()) return;
  for (int rank = 0; rank < actors_; ++rank) {
    // A dead rank stays dead: its process does not come back with the host.
    if (platform_.host(rank) != &host || !deaths_.emplace(rank, engine_.now()).second) continue;
    died_(rank, fmt::format("rank {} died: its host {} went off at {}", rank, host.get_cname(),
                            format_duration(engine_.now())));
  }
}

void Outages::link_changed(const simgrid_compat::s4u::Link& link) {
  note(fmt::format("link {}", link.get_cname()), link.is_on());
}

void Outages::note(const std::string& subject, bool is_on) {
  const auto open = open_.find(subject);
  if (is_on && open != open_.end()) {
    WorldCondition& condition = conditions_[open->second];
    condition.end = engine_.now();
    condition.what = fmt::format("{} was off from {} to {}", subject,
                                 format_duration(condition.begin), format_duration(engine_.now()));
    open_.erase(open);
  } else if (!is_on && open == open_.end()) {
    open_[subject] = conditions_.size();
    WorldCondition condition;
    condition.what = fmt::format("{} is off since {}", subject, format_duration(engine_.now()));
    condition.begin = engine_.now();
    condition.delivers = false;
    conditions_.push_back(std::move(condition));
  }
}

}  // namespace gradsync
