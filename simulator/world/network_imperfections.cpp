#include "gradsync/simulator/world/network_imperfections.hpp"

#include <memory>

#include <fmt/format.h>

#include "gradsync/simulator/platform/named_links.hpp"

namespace gradsync {
namespace {

/// Down for the last `down` of every period.
class FlappingLink : public std::enable_shared_from_this<FlappingLink> {
 public:
  FlappingLink(SimEngine& engine, LinkLoads& loads, LinkList links, Seconds down, Seconds period)
      : engine_(&engine), loads_(&loads), links_(std::move(links)), down_(down), period_(period) {}

  void wait_for_end_of_period() {
    engine_->in_background(period_ - down_, [self = shared_from_this()] { self->go_down(); });
  }

 private:
  void go_down() {
    for (LinkLoads::Link* link : links_) loads_->close(link, engine_->now() + down_);
    engine_->in_background(down_, [self = shared_from_this()] { self->come_up(); });
  }
  void come_up() {
    for (LinkLoads::Link* link : links_) loads_->open(link);
    wait_for_end_of_period();
  }

  SimEngine* engine_;
  LinkLoads* loads_;
  LinkList links_;
  Seconds down_;
  Seconds period_;
};

/// Traffic that goes on and off.
class PulsingTraffic : public std::enable_shared_from_this<PulsingTraffic> {
 public:
  PulsingTraffic(SimEngine& engine, LinkLoads& loads, const TrafficFlow& flow, Platform::Host* from,
                 Platform::Host* to)
      : engine_(&engine), loads_(&loads), flow_(flow), from_(from), to_(to) {
    std::vector<Platform::Link*> links;
    double unused = 0;
    from_->route_to(to_, links, &unused);
    way_ = loads.way(links);
    for (LinkLoads::Link* link : links) loads.always_solve(link);
  }

  void start() {
    engine_->in_background(flow_.begin, [self = shared_from_this()] { self->turn_on(); });
  }

 private:
  void turn_on() {
    const Seconds closed = loads_->time_to_open(way_);
    if (closed > Seconds{0}) {
      return engine_->in_background(closed, [self = shared_from_this()] { self->turn_on(); });
    }
    const auto under_way =
        engine_->start_background_flow(from_, to_, [self = shared_from_this()](double bytes) {
          self->loads_->add_of_others(self->way_, bytes);
        });
    if (flow_.period <= Seconds{0} || flow_.on >= flow_.period) return;
    engine_->in_background(flow_.on, [self = shared_from_this(), under_way] {
      self->engine_->stop_background_flow(under_way);
      self->engine_->in_background(self->flow_.period - self->flow_.on,
                                   [self] { self->turn_on(); });
    });
  }

  SimEngine* engine_;
  LinkLoads* loads_;
  TrafficFlow flow_;
  Platform::Host* from_;
  Platform::Host* to_;
  LinkLoads::Way way_;
};

}  // namespace

void arrange_links(const ImperfectionSpec& spec, SimEngine& engine, Platform& platform,
                   LinkLoads& loads) {
  for (std::size_t i = 0; i < spec.links.size(); ++i) {
    const ImperfectionSpec::Link& item = spec.links[i];
    const LinkList links =
        find_links(engine, item.link, item.node, fmt::format("/imperfections/links/{}", i));
    for (LinkLoads::Link* link : links) {
      if (item.factor != 1) {
        loads.set_share(link, loads.share(link) * item.factor);
        loads.describe(link, fmt::format("at {:g} of its bandwidth", item.factor));
      }
      if (item.latency > Seconds{0}) {
        platform.add_latency(link, item.latency);
        loads.describe(link, format_duration(item.latency) + " more latency");
      }
      if (item.down > Seconds{0}) {
        loads.describe(link, fmt::format("down {} of every {}", format_duration(item.down),
                                         format_duration(item.period)));
      }
    }
    if (item.down <= Seconds{0}) continue;
    for (LinkLoads::Link* link : links) loads.always_solve(link);
    std::make_shared<FlappingLink>(engine, loads, links, item.down, item.period)
        ->wait_for_end_of_period();
  }
}

void arrange_traffic(SimEngine& engine, const Platform& platform, LinkLoads& loads) {
  for (const Platform::Traffic& traffic : platform.traffic()) {
    std::make_shared<PulsingTraffic>(engine, loads, traffic.flow, traffic.from, traffic.to)
        ->start();
  }
}

}  // namespace gradsync
