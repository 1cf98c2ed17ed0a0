// Constraints of faults beyond their keys: existing ranks, a backend that can inject them.

#include <algorithm>

#include <fmt/format.h>

#include "gradsync/testbed/scenario/fault_rows.hpp"
#include "gradsync/testbed/scenario/scenario_reader.hpp"

namespace gradsync::scenario_table {
namespace {

/// The checks of one fault.
class FaultChecks {
 public:
  FaultChecks(const ScenarioDocument& document, const Scenario& scenario, std::size_t index)
      : document_(document),
        s_(scenario),
        fault_(scenario.faults[index]),
        place_(fmt::format("/faults/{}", index)) {}

  void run() const {
    check_ranks("ranks", fault_.ranks);
    std::visit([this](const auto& kind) { check(kind); }, fault_.kind);
  }

 private:
  using Json = ScenarioDocument::Json;

  /// Checks common to all kinds, after those specific to the kind.
  template <class Kind>
  void check(const Kind& kind) const {
    check_backend();
    if constexpr (FaultEvent<Kind>) check_point(kind.at);
  }

  void check(const GroupFault& group) const {
    check_ranks("members", group.members);
    if (group.members.size() < 2 || !std::is_sorted(group.members.begin(), group.members.end())) {
      fail("members", group.members, "two ranks or more, in ascending order");
    }
    check<GroupFault>(group);
  }

  void check(const CollectiveFault& call) const {
    check<CollectiveFault>(call);
    if (!call.group.empty()) return;  // checked when it is called: the group's ranks are its own
    if (has_root(call.op) && call.root >= s_.ranks) {
      fail("root", call.root, "a rank of the run" + because("/ranks", s_.ranks));
    }
    if (!is_point_to_point(call.op)) return;
    if (call.peer >= s_.ranks) {
      fail("peer", call.peer, "a rank of the run" + because("/ranks", s_.ranks));
    }
    const auto& ranks = fault_.ranks;
    if (ranks.empty() || std::find(ranks.begin(), ranks.end(), call.peer) != ranks.end()) {
      fail("peer", call.peer, "another rank than those that call it",
           fmt::format("name in \"ranks\" who calls {}; the other side is a fault of its own",
                       to_string(call.op)));
    }
  }

  void check(const UnusedFault& unused) const {
    if (unused.parameters.empty()) {
      fail("parameters", unused.parameters, "the parameters that get no gradient");
    }
    check<UnusedFault>(unused);
  }

  void check(const AddFault& add) const {
    if (add.parameters.empty()) {
      fail("parameters", add.parameters, "the names of the parameters that are added");
    }
    check<AddFault>(add);
  }

  void check(const RendezvousFault& rendezvous) const {
    check<RendezvousFault>(rendezvous);
    if (rendezvous.wrong_address && rendezvous.duration > Seconds{0}) {
      fail("duration", Json(format_duration(rendezvous.duration)), "0s",
           "give the rank that is late a fault of its own" +
               because(place_ + "/wrong_address", true));
    }
  }

  void check(const LinkFault& link) const {
    check<LinkFault>(link);
    if (link.loss_percent > 0) check_loss(link);
    if (s_.fidelity == Fidelity::kAnalytic) {
      fail("kind", "link", "a fault that the fidelity can do",
           "a closed form cannot tell what passes when" +
               because("/simulation/fidelity", "analytic") + "; take auto, message or flow");
    }
    if (link.link.empty() && s_.cluster.platform_file.empty()) check_node(link);
  }

  void check_ranks(const std::string& key, const std::vector<std::int64_t>& ranks) const {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] < s_.ranks) continue;
      fail(fmt::format("{}/{}", key, i), ranks[i],
           "a rank of the run" + because("/ranks", s_.ranks));
    }
  }

  /// Rejects a fault that the backend cannot inject, because a run without it would be a different
  /// run.
  void check_backend() const {
    const FaultRow& row = row_of(fault_);
    const std::string why = row.missing ? row.missing(fault_, s_) : "";
    if (why.empty()) return;
    fail("kind", name_of(fault_),
         "a fault that the backend can do" + because("/backend", s_.backend), why);
  }

  void check_point(FaultPoint at) const {
    if (at != FaultPoint::kCleanUp || row_of(fault_).at_clean_up) return;
    fail("at", "clean_up", "a place in the training",
         "only \"stall\" and \"delay\" are allowed at \"clean_up\"" +
             because(place_ + "/kind", name_of(fault_)));
  }

  void check_loss(const LinkFault& link) const {
    if (s_.cluster.library != ClusterSpec::Library::kGloo) {
      fail("loss_percent", link.loss_percent, "0",
           "what a loss costs is known of TCP, which Gloo uses; adapters that NCCL uses have their "
           "own ways" +
               because("/cluster/library", "nccl"));
    }
    const bool no_latency =
        s_.cluster.platform_file.empty() &&
        s_.cluster.inter_node.latency + s_.cluster.intra_node.latency <= Seconds{0};
    if (no_latency) {
      fail("loss_percent", link.loss_percent, "0 in a cluster without latency",
           "what a loss costs depends on the round-trip time");
    }
  }

  void check_node(const LinkFault& link) const {
    const std::int64_t nodes = (s_.ranks + s_.cluster.gpus_per_node - 1) / s_.cluster.gpus_per_node;
    if (link.node >= nodes) {
      fail("node", link.node,
           fmt::format("one of the {} nodes that have ranks, counted from 0", nodes));
    }
    if (nodes < 2) {
      fail("node", link.node, "a node of several, whose cables the job uses",
           "all ranks are on one; lower cluster.gpus_per_node" +
               because("/cluster/gpus_per_node", s_.cluster.gpus_per_node));
    }
  }

  std::string because(const std::string& pointer, const Json& value) const {
    return " (" + document_.mention(pointer, value) + ")";
  }

  [[noreturn]] void fail(const std::string& key, const Json& value, const std::string& expected,
                         const std::string& hint = {}) const {
    document_.fail(place_ + "/" + key, expected, hint, value);
  }

  const ScenarioDocument& document_;
  const Scenario& s_;
  const FaultSpec& fault_;
  std::string place_;
};

}  // namespace

void check_faults(const ScenarioDocument& document, const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) FaultChecks(document, scenario, i).run();
}

}  // namespace gradsync::scenario_table
