#include "gradsync/simulator/world/world_faults.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "gradsync/simulator/platform/named_links.hpp"

namespace gradsync {
namespace {

/// Gives links another share of their bandwidth for a while; concurrent changes to the same links
/// compose.
void schedule(SimEngine& engine, LinkLoads& loads, const LinkList& links, const LinkFault& fault) {
  const bool ends = fault.lasts > Seconds{0};
  const bool is_outage = fault.factor == 0 && ends;
  for (LinkLoads::Link* link : links) loads.always_solve(link);
  engine.in_background(fault.duration,
                       [=, &engine, &loads, factor = fault.factor, lasts = fault.lasts] {
                         for (LinkLoads::Link* link : links) {
                           if (is_outage) {
                             loads.close(link, engine.now() + lasts);
                           } else {
                             loads.set_share(link, loads.share(link) * factor);
                           }
                         }
                       });
  if (!ends) return;
  for (LinkLoads::Link* link : links) loads.expect_recovery(link);
  engine.in_background(fault.duration + fault.lasts, [=, &loads, factor = fault.factor] {
    for (LinkLoads::Link* link : links) {
      if (is_outage) {
        loads.open(link);
      } else {
        loads.set_share(link, loads.share(link) / factor);
      }
    }
  });
}

LossPeriod loss_of(const LinkFault& fault) {
  constexpr double kPercent = 100;
  const Seconds for_ever(std::numeric_limits<double>::infinity());
  return {fault.duration, fault.lasts > Seconds{0} ? fault.duration + fault.lasts : for_ever,
          fault.loss_percent / kPercent};
}

/// The wording for a link fault: its name, and its effect on the cables ("is down").
struct Words {
  std::string subject;
  std::string is, was;
};

Words words_for(const LinkFault& fault) {
  const bool one = !fault.link.empty();
  Words words;
  words.subject = one ? "link " + fault.link : fmt::format("the cables of node {}", fault.node);
  const auto add = [](std::string& text, const std::string& more) {
    text += (text.empty() ? "" : " and ") + more;
  };
  if (fault.factor == 0) {
    words.is = one ? "is down" : "are down";
    words.was = one ? "was down" : "were down";
  } else if (fault.factor != 1) {
    const std::string share =
        fmt::format("{} of {} bandwidth", fault.factor, one ? "its" : "their");
    words.is = (one ? "has " : "have ") + share;
    words.was = "had " + share;
  }
  if (fault.loss_percent > 0) {
    const std::string part = fmt::format("{}% of the packets", fault.loss_percent);
    add(words.is, (one ? "loses " : "lose ") + part);
    add(words.was, "lost " + part);
  }
  return words;
}

}  // namespace

void schedule_world_faults(SimEngine& engine, LinkLoads& loads,
                           const std::vector<FaultSpec>& faults) {
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const auto* fault = faults[i].as<LinkFault>();
    if (fault == nullptr) continue;
    const std::optional<std::int64_t> node =
        fault->link.empty() ? std::optional(fault->node) : std::nullopt;
    const LinkList links = find_links(engine, fault->link, node, fmt::format("/faults/{}", i));
    if (fault->factor != 1) schedule(engine, loads, links, *fault);
    if (fault->loss_percent <= 0) continue;
    for (LinkLoads::Link* link : links) loads.lose_packets(link, loss_of(*fault));
  }
}

std::vector<WorldCondition> world_conditions(const std::vector<FaultSpec>& faults,
                                             const ImperfectionSpec& imperfections, Seconds end) {
  std::vector<WorldCondition> conditions;
  for (const FaultSpec& any_fault : faults) {
    const auto* link = any_fault.as<LinkFault>();
    if (link == nullptr || link->duration > end) continue;
    const Words words = words_for(*link);
    if (words.is.empty()) continue;
    WorldCondition condition;
    condition.begin = link->duration;
    const Seconds over = link->duration + link->lasts;
    const bool is_over = link->lasts > Seconds{0} && over <= end;
    condition.what =
        fmt::format("{} {} {} {}", words.subject, is_over ? words.was : words.is,
                    link->lasts > Seconds{0} ? "from" : "since", format_duration(link->duration));
    if (link->lasts > Seconds{0}) condition.what += " to " + format_duration(over);
    if (is_over) condition.end = over;
    condition.delivers = link->factor > 0;
    conditions.push_back(std::move(condition));
  }
  for (const ImperfectionSpec::Link& link : imperfections.links) {
    if (link.down <= Seconds{0} || link.period - link.down > end) continue;
    const Seconds up = link.period - link.down;
    const Seconds phase(std::fmod(end.count(), link.period.count()));
    WorldCondition condition;
    condition.begin = up;
    condition.delivers = phase < up;
    condition.what =
        fmt::format("{} down {} of every {}{}",
                    link.node ? fmt::format("the cables of node {} are", *link.node)
                              : "link " + link.link + " is",
                    format_duration(link.down), format_duration(link.period),
                    condition.delivers
                        ? ""
                        : fmt::format(", this time since {}", format_duration(end - phase + up)));
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

std::vector<std::shared_ptr<DeviceSlots>> device_slots(const std::vector<FaultSpec>& faults,
                                                       int ranks) {
  std::vector<std::shared_ptr<DeviceSlots>> slots;
  for (const FaultSpec& fault : faults) {
    const auto* room = fault.as<SlotsFault>();
    if (room == nullptr) continue;
    slots.resize(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      if (!concerns(fault, rank)) continue;
      slots[static_cast<std::size_t>(rank)] =
          std::make_shared<DeviceSlots>(static_cast<int>(room->slots), room->newest_first);
    }
  }
  return slots;
}

}  // namespace gradsync
