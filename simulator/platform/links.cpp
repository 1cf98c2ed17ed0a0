#include "gradsync/simulator/platform/links.hpp"

#include <fmt/format.h>

#include "gradsync/simulator/platform/cube_mesh.hpp"
#include "gradsync/simulator/platform/gpu_cable.hpp"

namespace gradsync {
namespace {

using NodeTopology = ClusterSpec::NodeTopology;
using Topology = ClusterSpec::Topology;

/// Links in groups of one kind; a cable has two, up and down. Models the same cluster as Platform.
class StructuralLinks final : public Links {
 public:
  StructuralLinks(const ClusterSpec& cluster, int ranks) : c_(cluster), ranks_(ranks) {
    nodes_ = (ranks + gpus() - 1) / gpus();
    const auto sized = [&](std::int64_t links, BytesPerSecond bandwidth, const char* name) {
      groups_.push_back({count_, bandwidth, name});
      count_ += static_cast<std::size_t>(links);
      return groups_.back().first;
    };
    const BytesPerSecond gpu = gpu_cable(c_, ranks).bandwidth;
    gpu_ = sized(2 * ranks_, gpu, "gpu");
    adapter_ = sized(2 * nodes_ * c_.nics_per_node, c_.inter_node.bandwidth, "nic");
    cpu_ = sized(nodes_, c_.software.host_bandwidth.value_or(BytesPerSecond{}), "cpu");
    leaf_ =
        sized(2 * ((nodes_ + c_.leaf_nodes - 1) / c_.leaf_nodes),
              {c_.inter_node.bandwidth.value *
               static_cast<double>(c_.leaf_nodes * c_.nics_per_node) / c_.leaf_oversubscription},
              "leaf");
    switches_ = (gpus() + c_.pcie_gpus_per_switch - 1) / c_.pcie_gpus_per_switch;
    switch_ = sized(2 * nodes_ * switches_, gpu, "pcie-switch");
    socket_ = sized(2 * nodes_, c_.pcie_socket.bandwidth, "socket");
    constexpr std::int64_t kPairs = cube_mesh::kGpus * cube_mesh::kGpus;
    const bool mesh = c_.node_topology == NodeTopology::kCubeMesh;
    nvlink_ = sized(mesh ? nodes_ * kPairs : 0, gpu, "nvlink");
    double_nvlink_ = sized(mesh ? nodes_ * kPairs : 0, {2 * gpu.value}, "nvlink");
  }

  std::size_t count() const override { return count_; }

  BytesPerSecond bandwidth(std::size_t link) const override { return group(link).bandwidth; }

  std::string name(std::size_t link) const override {
    const Group& of = group(link);
    return fmt::format("{}-{}", of.name, (link - of.first) / (of.first == cpu_ ? 1 : 2));
  }

  void route(int from, int to, std::vector<std::size_t>& links) override {
    links.clear();
    walk(from, to, [&](std::size_t link, Seconds) { links.push_back(link); });
  }

  Seconds latency(int from, int to) override {
    Seconds sum = c_.software.per_message;
    walk(from, to, [&](std::size_t, Seconds latency) { sum += latency; });
    return sum;
  }

 private:
  struct Group {
    std::size_t first;
    BytesPerSecond bandwidth;
    const char* name;
  };

  std::int64_t gpus() const { return c_.gpus_per_node; }
  static std::size_t cable(std::size_t first, std::int64_t number, bool down) {
    return first + 2 * static_cast<std::size_t>(number) + (down ? 1 : 0);
  }
  const Group& group(std::size_t link) const {
    std::size_t at = groups_.size() - 1;
    while (groups_[at].first > link) --at;  // an empty group starts where the next one does
    return groups_[at];
  }

  template <class Visit>
  void walk(int from, int to, const Visit& visit) const {
    const std::int64_t a = from / gpus();
    const std::int64_t b = to / gpus();
    const bool limited = c_.software.host_bandwidth.has_value();
    if (limited) visit(cpu_ + static_cast<std::size_t>(a), Seconds(0));
    if (limited && a != b) visit(cpu_ + static_cast<std::size_t>(b), Seconds(0));
    if (a == b) {
      inside(a, from, to, visit);
    } else {
      between(a, b, from, to, visit);
    }
  }

  template <class Visit>
  void inside(std::int64_t node, int from, int to, const Visit& visit) const {
    const Seconds latency = c_.intra_node.latency;
    if (c_.node_topology == NodeTopology::kCubeMesh) {
      int at = static_cast<int>(from % gpus());
      const auto hop = [&](int next) {
        const bool wide = cube_mesh::links(at, next) > 1;
        const std::int64_t pair = (node * cube_mesh::kGpus + at) * cube_mesh::kGpus + next;
        visit((wide ? double_nvlink_ : nvlink_) + static_cast<std::size_t>(pair), latency);
        at = next;
      };
      const int target = static_cast<int>(to % gpus());
      for (const int via : cube_mesh::way(at, target)) hop(via);
      hop(target);
      return;
    }
    visit(cable(gpu_, from, false), latency);
    if (c_.node_topology == NodeTopology::kPcieTree) {
      const std::int64_t a = from % gpus() / c_.pcie_gpus_per_switch;
      const std::int64_t b = to % gpus() / c_.pcie_gpus_per_switch;
      if (a != b) {
        visit(cable(switch_, node * switches_ + a, false), latency);
        if (a % 2 != b % 2) visit(cable(socket_, node, a % 2 > b % 2), c_.pcie_socket.latency);
        visit(cable(switch_, node * switches_ + b, true), latency);
      }
    }
    visit(cable(gpu_, to, true), latency);
  }

  template <class Visit>
  void between(std::int64_t a, std::int64_t b, int from, int to, const Visit& visit) const {
    const bool mesh = c_.node_topology == NodeTopology::kCubeMesh;
    const auto adapter = [&](int rank) {
      return rank / gpus() * c_.nics_per_node + rank % gpus() * c_.nics_per_node / gpus();
    };
    if (!mesh) visit(cable(gpu_, from, false), c_.intra_node.latency);
    visit(cable(adapter_, adapter(from), false), c_.inter_node.latency);
    if (c_.topology == Topology::kLeafSpine && a / c_.leaf_nodes != b / c_.leaf_nodes) {
      visit(cable(leaf_, a / c_.leaf_nodes, false), c_.inter_node.latency);
      visit(cable(leaf_, b / c_.leaf_nodes, true), c_.inter_node.latency);
    }
    visit(cable(adapter_, adapter(to), true), c_.inter_node.latency);
    if (!mesh) visit(cable(gpu_, to, true), c_.intra_node.latency);
  }

  ClusterSpec c_;
  std::int64_t ranks_;
  std::int64_t nodes_ = 1;
  std::int64_t switches_ = 1;
  std::size_t count_ = 0;
  std::vector<Group> groups_;
  // The first link of each group.
  std::size_t gpu_, adapter_, cpu_, leaf_, switch_, socket_, nvlink_, double_nvlink_;
};

class PlatformLinks final : public Links {
 public:
  explicit PlatformLinks(const Platform& platform) : platform_(platform) {}

  void route(int from, int to, std::vector<std::size_t>& links) override {
    links.clear();
    for (const Platform::Link* link : platform_.route(from, to)) {
      const auto [known, is_new] = numbers_.emplace(link, links_.size());
      if (is_new) links_.push_back(link);
      links.push_back(known->second);
    }
  }
  std::size_t count() const override { return links_.size(); }
  BytesPerSecond bandwidth(std::size_t link) const override {
    return {links_[link]->get_bandwidth()};
  }
  std::string name(std::size_t link) const override { return links_[link]->get_name(); }
  Seconds latency(int from, int to) override { return platform_.latency(from, to); }

 private:
  const Platform& platform_;
  std::vector<const Platform::Link*> links_;
  std::unordered_map<const Platform::Link*, std::size_t> numbers_;
};

}  // namespace

std::unique_ptr<Links> make_structural_links(const ClusterSpec& cluster, int ranks) {
  const bool known = cluster.platform_file.empty() && (cluster.topology == Topology::kStar ||
                                                       cluster.topology == Topology::kLeafSpine);
  if (!known) return nullptr;
  return std::make_unique<StructuralLinks>(cluster, ranks);
}

std::unique_ptr<Links> make_platform_links(const Platform& platform) {
  return std::make_unique<PlatformLinks>(platform);
}

}  // namespace gradsync
