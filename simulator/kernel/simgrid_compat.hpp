#pragma once

// The only code that knows the differences between SimGrid 3.32 (Debian 12) and 4.0 (Debian 13).
// The tests run with both: 4.0 still compiles most of 3.32's platform calls but then fails at run
// time.
//
// - Root zone. 3.32: the first zone without a parent. 4.0: already exists, with full routing.
// - Zones. 3.32: create_*_zone, then set_parent. 4.0: parent->add_netzone_*.
// - Gateways. 3.32: arguments of add_route. 4.0: set_gateway of the zone, before add_route.
// - Leaves of a fat tree. 3.32: a callback returns {netpoint, gateway} and is called at once.
//   4.0: set_netzone_cb returns the zone and is called when the tree is sealed.
// - End of a flow. 3.32: Activity::on_completion_cb. 4.0: Comm::on_completion_cb.
// - Kernel calls. 3.32: <simgrid/simix.hpp>. 4.0: <simgrid/simcall.hpp>.
// - Hosts and links that go off. 3.32: on_state_change_cb. 4.0: on_onoff_cb.
// - Time resolution. 3.32: surf/precision. 4.0: precision/timing.
//
// The same in both, and therefore used directly elsewhere: Engine::on_deadlock_cb,
// Comm::sendto_init, Semaphore, kernel::timer::Timer, this_actor::sleep_for, the --cfg and --log
// arguments.

#include <simgrid/s4u.hpp>  // first, because SimGrid's other headers depend on it

#include <simgrid/version.h>
#include <simgrid/kernel/Timer.hpp>
#if SIMGRID_VERSION >= 40000
#include <simgrid/simcall.hpp>
#else
#include <simgrid/simix.hpp>
#endif

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gradsync::simgrid_compat {

namespace s4u = simgrid::s4u;

#if SIMGRID_VERSION >= 40000
inline constexpr const char* kTimeResolutionOption = "precision/timing";
#else
inline constexpr const char* kTimeResolutionOption = "surf/precision";
#endif

/// A switch with its members. `gateway` is where its traffic from and to other zones passes; it
/// adds no link.
struct Zone {
  s4u::NetZone* zone = nullptr;
  simgrid::kernel::routing::NetPoint* gateway = nullptr;
};

/// A star: each member reaches the others through the links of both. `parent` is null for the
/// platform's outermost zone.
inline Zone add_star(s4u::Engine& engine, s4u::NetZone* parent, const std::string& name) {
  Zone star;
#if SIMGRID_VERSION >= 40000
  star.zone = (parent != nullptr ? parent : engine.get_netzone_root())->add_netzone_star(name);
  star.gateway = star.zone->add_router(name + "-switch");
  star.zone->set_gateway(star.gateway);
#else
  static_cast<void>(engine);
  star.zone = s4u::create_star_zone(name);
  if (parent != nullptr) star.zone->set_parent(parent);
  star.gateway = star.zone->create_router(name + "-switch");
#endif
  return star;
}

inline s4u::Host* add_host(s4u::NetZone* zone, const std::string& name, double flops_per_second) {
#if SIMGRID_VERSION >= 40000
  return zone->add_host(name, flops_per_second);
#else
  return zone->create_host(name, flops_per_second)->seal();
#endif
}

/// A full-duplex cable: each direction has the full bandwidth.
inline s4u::SplitDuplexLink* add_cable(s4u::NetZone* zone, const std::string& name,
                                       double bytes_per_second) {
#if SIMGRID_VERSION >= 40000
  auto* link = zone->add_split_duplex_link(name, bytes_per_second);
#else
  auto* link = zone->create_split_duplex_link(name, bytes_per_second);
#endif
  link->seal();
  return link;
}

/// A link whose bandwidth is shared by both directions.
inline s4u::Link* add_shared_link(s4u::NetZone* zone, const std::string& name,
                                  double bytes_per_second) {
#if SIMGRID_VERSION >= 40000
  auto* link = zone->add_link(name, bytes_per_second);
#else
  auto* link = zone->create_link(name, bytes_per_second);
#endif
  link->seal();
  return link;
}

/// The links from a member of a star to its center; the reverse route mirrors them.
using DirectedLinks = std::vector<s4u::LinkInRoute>;
inline s4u::LinkInRoute up(s4u::SplitDuplexLink* cable) {
  return {cable, s4u::LinkInRoute::Direction::UP};
}
inline s4u::LinkInRoute down(s4u::SplitDuplexLink* cable) {
  return {cable, s4u::LinkInRoute::Direction::DOWN};
}

/// In `star`: connects `member` through `links`.
inline void plug(s4u::NetZone* star, const s4u::Host* member, const DirectedLinks& links) {
#if SIMGRID_VERSION >= 40000
  star->add_route(member, nullptr, links, true);
#else
  star->add_route(member->get_netpoint(), nullptr, nullptr, nullptr, links, true);
#endif
}
inline void plug(s4u::NetZone* star, const Zone& member, const DirectedLinks& links) {
#if SIMGRID_VERSION >= 40000
  star->add_route(member.zone, nullptr, links, true);
#else
  star->add_route(member.zone->get_netpoint(), nullptr, member.gateway, nullptr, links, true);
#endif
}

/// A zone with an explicit route between any two hosts.
inline s4u::NetZone* add_full(s4u::NetZone* parent, const std::string& name) {
#if SIMGRID_VERSION >= 40000
  return parent->add_netzone_full(name);
#else
  auto* zone = s4u::create_full_zone(name);
  zone->set_parent(parent);
  return zone;
#endif
}
/// In one direction only.
inline void join(s4u::NetZone* full, const s4u::Host* from, const s4u::Host* to,
                 const DirectedLinks& links) {
#if SIMGRID_VERSION >= 40000
  full->add_route(from, to, links, false);
#else
  full->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links, false);
#endif
}

/// Adds leaf i, a zone, to a fabric.
using MakeLeaf = std::function<Zone(s4u::NetZone*, unsigned long)>;

#if SIMGRID_VERSION >= 40000
inline s4u::NetZone* with_leaves(s4u::NetZone* fabric, const MakeLeaf& make_leaf) {
  fabric->set_netzone_cb([make_leaf](s4u::NetZone* zone, const std::vector<unsigned long>&,
                                     unsigned long i) { return make_leaf(zone, i).zone; });
  return fabric;
}
#else
inline s4u::ClusterCallbacks leaf_callbacks(const MakeLeaf& make_leaf) {
  return s4u::ClusterCallbacks(
      [make_leaf](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long i) {
        const Zone leaf = make_leaf(zone, i);
        return std::make_pair(leaf.zone->get_netpoint(), leaf.gateway);
      });
}
#endif

/// A fat tree with identical cables.
inline s4u::NetZone* add_fat_tree(s4u::NetZone* parent, const std::string& name,
                                  const std::vector<unsigned>& down_links,
                                  const std::vector<unsigned>& up_links,
                                  const std::vector<unsigned>& cables, double bytes_per_second,
                                  const MakeLeaf& make_leaf) {
  const auto levels = static_cast<unsigned>(down_links.size());
  constexpr auto kPolicy = s4u::Link::SharingPolicy::SPLITDUPLEX;
#if SIMGRID_VERSION >= 40000
  return with_leaves(parent->add_netzone_fatTree(name, levels, down_links, up_links, cables,
                                                 bytes_per_second, 0, kPolicy),
                     make_leaf);
#else
  return s4u::create_fatTree_zone(name, parent, {levels, down_links, up_links, cables},
                                  leaf_callbacks(make_leaf), bytes_per_second, 0, kPolicy);
#endif
}

inline s4u::NetZone* add_torus(s4u::NetZone* parent, const std::string& name,
                               const std::vector<unsigned long>& dimensions,
                               double bytes_per_second, const MakeLeaf& make_leaf) {
  constexpr auto kPolicy = s4u::Link::SharingPolicy::SPLITDUPLEX;
#if SIMGRID_VERSION >= 40000
  return with_leaves(parent->add_netzone_torus(name, dimensions, bytes_per_second, 0, kPolicy),
                     make_leaf);
#else
  return s4u::create_torus_zone(name, parent, dimensions, leaf_callbacks(make_leaf),
                                bytes_per_second, 0, kPolicy);
#endif
}

/// A dragonfly with one cable between connected routers.
inline s4u::NetZone* add_dragonfly(s4u::NetZone* parent, const std::string& name, unsigned groups,
                                   unsigned chassis, unsigned routers, unsigned nodes,
                                   double bytes_per_second, const MakeLeaf& make_leaf) {
  constexpr auto kPolicy = s4u::Link::SharingPolicy::SPLITDUPLEX;
#if SIMGRID_VERSION >= 40000
  return with_leaves(parent->add_netzone_dragonfly(name, {groups, 1u}, {chassis, 1u}, {routers, 1u},
                                                   nodes, bytes_per_second, 0, kPolicy),
                     make_leaf);
#else
  return s4u::create_dragonfly_zone(name, parent,
                                    {{groups, 1u}, {chassis, 1u}, {routers, 1u}, nodes},
                                    leaf_callbacks(make_leaf), bytes_per_second, 0, kPolicy);
#endif
}

inline void start_actor(const std::string& name, s4u::Host* host, unsigned stack_bytes,
                        const std::function<void()>& code) {
  s4u::Actor::init(name, host)->set_stacksize(stack_bytes / 1024)->start(code);  // in KiB
}

/// Calls `callback` in the kernel when a flow that was started there has ended.
inline void on_flow_completion(const std::function<void(const s4u::Activity&)>& callback) {
#if SIMGRID_VERSION >= 40000
  s4u::Comm::on_completion_cb([callback](const s4u::Comm& flow) { callback(flow); });
#else
  s4u::Activity::on_completion_cb(callback);
#endif
}

/// Calls the callbacks in the kernel when a host or a link has gone on or off.
inline void on_outage(const std::function<void(const s4u::Host&)>& host,
                      const std::function<void(const s4u::Link&)>& link) {
#if SIMGRID_VERSION >= 40000
  s4u::Host::on_onoff_cb(host);
  s4u::Link::on_onoff_cb(link);
#else
  s4u::Host::on_state_change_cb(host);
  s4u::Link::on_state_change_cb(link);
#endif
}

/// Runs `code` in the kernel, where no actor can interleave; immediately if already there.
template <typename Code>
void in_kernel(Code&& code) {
  simgrid::kernel::actor::simcall_answered(std::forward<Code>(code));
}

}  // namespace gradsync::simgrid_compat
