#include "simulator/world_faults.hpp"

#include <fmt/format.h>

#include "engine/core/error.hpp"

namespace gradsync {
namespace {

namespace s4u = simgrid_compat::s4u;

/// The links between a node and the fabric, in both directions.
std::vector<s4u::Link*> cables_of(const Platform& platform, const ClusterSpec& cluster, int ranks,
                                  std::int64_t node) {
  const auto node_of = [&](int rank) { return rank / cluster.gpus_per_node; };
  int inside = -1, outside = -1;
  for (int rank = 0; rank < ranks; ++rank) {
    int& found = node_of(rank) == node ? inside : outside;
    if (found < 0) found = rank;
  }
  if (inside < 0 || outside < 0) {
    throw Error(
        ErrorCode::kInvalidScenario,
        fmt::format("a fault of kind link names node {}, which has no rank or all of them", node));
  }
  // A way leads over the rank's own cable and then over its node's; what follows is the fabric's.
  const std::vector<s4u::Link*> out = platform.route(inside, outside);
  const std::vector<s4u::Link*> back = platform.route(outside, inside);
  std::vector<s4u::Link*> cables;
  if (out.size() > 1) cables = {out[1], back[back.size() - 2]};
  return cables;
}

}  // namespace

std::vector<std::string> schedule_world_faults(SimEngine& engine, const Platform& platform,
                                               LinkLoads& loads, const ClusterSpec& cluster,
                                               int ranks, const std::vector<FaultSpec>& faults) {
  std::vector<std::string> lines;
  for (const FaultSpec& fault : faults) {
    if (fault.kind != FaultKind::kLink) continue;
    const std::vector<s4u::Link*> cables = cables_of(platform, cluster, ranks, fault.node);
    engine.after(fault.duration, [cables, &loads, factor = fault.factor] {
      for (s4u::Link* cable : cables) loads.set_share(cable, loads.share(cable) * factor);
    });
    lines.push_back(fault.factor > 0
                        ? fmt::format("the cables of node {} have {} of their bandwidth",
                                      fault.node, fault.factor)
                        : fmt::format("the cables of node {} are down", fault.node));
  }
  return lines;
}

std::vector<std::shared_ptr<DeviceSlots>> device_slots(const std::vector<FaultSpec>& faults,
                                                       int ranks) {
  std::vector<std::shared_ptr<DeviceSlots>> slots;
  for (const FaultSpec& fault : faults) {
    if (fault.kind != FaultKind::kSlots) continue;
    slots.resize(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      if (!concerns(fault, rank)) continue;
      slots[static_cast<std::size_t>(rank)] =
          std::make_shared<DeviceSlots>(static_cast<int>(fault.slots), fault.newest_first);
    }
  }
  return slots;
}

}  // namespace gradsync
