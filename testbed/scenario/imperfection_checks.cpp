// The imperfections supported by each backend:
//
// gloo, nccl                      message, flow   analytic
//   compute.spread, compute.jitter,    replayed models: a computed     yes             yes
//     slow_ranks                       one takes the time it takes
//   late_ranks, loader_stalls          yes                             yes             yes
//   compute.while_communicating        no: the hardware has its own    yes             yes
//   links: factor, latency             no: real cables                 yes             yes
//   links: down                        no                              yes             no
//   traffic                            no                              yes             no
//
// The analytic model knows each cable's bandwidth, but not when data passes over it; `auto` uses
// flows for what it cannot model. Unsupported imperfections are rejected, because a run without
// them would answer a different question.

#include <fmt/format.h>

#include "gradsync/testbed/scenario/backend_descriptor.hpp"
#include "gradsync/testbed/scenario/scenario_reader.hpp"

namespace gradsync::scenario_table {
namespace {

class ImperfectionChecks {
 public:
  ImperfectionChecks(const ScenarioDocument& document, const Scenario& scenario)
      : document_(document),
        s_(scenario),
        spec_(scenario.imperfections),
        backend_(backend_descriptor(scenario.backend)) {}

  void run() const {
    check_ranks("slow_ranks", spec_.slow_ranks);
    check_ranks("late_ranks", spec_.late_ranks);
    check_ranks("loader_stalls", spec_.loader_stalls);
    for (std::size_t i = 0; i < spec_.links.size(); ++i) check_link(i);
    for (std::size_t i = 0; i < spec_.traffic.size(); ++i) check_traffic(i);
    if (!backend_.is_simulated) check_real_world();
  }

 private:
  using Json = ScenarioDocument::Json;

  template <class Item>
  void check_ranks(const char* list, const std::vector<Item>& items) const {
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (std::size_t k = 0; k < items[i].ranks.size(); ++k) {
        if (items[i].ranks[k] < s_.ranks) continue;
        fail(fmt::format("{}/{}/ranks/{}", list, i, k), items[i].ranks[k],
             "a rank of the run" + because("/ranks", s_.ranks));
      }
    }
  }

  void check_link(std::size_t index) const {
    const ImperfectionSpec::Link& link = spec_.links[index];
    const std::string place = fmt::format("links/{}/", index);
    if (!backend_.changes_links) fail_in_reality(place + (link.node ? "node" : "link"), link.link);
    if (link.node.has_value() == !link.link.empty()) {
      fail(place + "link", link.link, "the name of a link, or in its place a node");
    }
    if (link.node) check_node(place + "node", *link.node);
    check_period(place, "down", link.down, link.period);
    if (link.down > Seconds{0} && s_.fidelity == Fidelity::kAnalytic) {
      fail(place + "down", Json(format_duration(link.down)), "0s", not_analytic());
    }
  }

  void check_traffic(std::size_t index) const {
    const ImperfectionSpec::Traffic& traffic = spec_.traffic[index];
    const std::string place = fmt::format("traffic/{}/", index);
    if (!backend_.changes_links) fail_in_reality(place + "flows", traffic.flows);
    if (nodes() < 2) {
      fail(place + "flows", traffic.flows, "several nodes, between which it flows",
           "all ranks are on one; lower cluster.gpus_per_node" +
               because("/cluster/gpus_per_node", s_.cluster.gpus_per_node));
    }
    if (traffic.from) check_node(place + "from", *traffic.from);
    if (traffic.to) check_node(place + "to", *traffic.to);
    if (traffic.from && traffic.from == traffic.to) {
      fail(place + "to", *traffic.to, "another node than the one it comes from");
    }
    check_period(place, "on", traffic.on, traffic.period);
    if (s_.fidelity == Fidelity::kAnalytic) {
      fail(place + "flows", traffic.flows, "no traffic", not_analytic());
    }
  }

  void check_period(const std::string& place, const char* part, Seconds value,
                    Seconds period) const {
    if (value <= period && (value > Seconds{0} || period == Seconds{0})) return;
    fail(place + part, Json(format_duration(value)),
         "a part of the period" +
             because("/imperfections/" + place + "period", Json(format_duration(period))));
  }

  void check_node(const std::string& place, std::int64_t node) const {
    if (node < nodes()) return;
    fail(place, node, fmt::format("one of the {} nodes that have ranks, counted from 0", nodes()));
  }

  std::int64_t nodes() const {
    if (!s_.cluster.platform_file.empty()) return s_.ranks;
    return (s_.ranks + s_.cluster.gpus_per_node - 1) / s_.cluster.gpus_per_node;
  }

  std::string not_analytic() const {
    return "a closed form cannot tell what passes when" +
           because("/simulation/fidelity", "analytic") + "; take auto, message or flow";
  }

  [[noreturn]] void fail_in_reality(const std::string& place, const Json& value) const {
    fail(place, value, "nothing of the network",
         "only simulated cables can be made slow or shared" + because("/backend", s_.backend));
  }

  void check_real_world() const {
    const std::string in_sim = "only the simulator can do it" + because("/backend", s_.backend);
    if (spec_.while_communicating != 1) {
      fail("compute/while_communicating", spec_.while_communicating, "1",
           in_sim + "; real hardware slows down by itself");
    }
    if (s_.model.kind == ModelSpec::Kind::kReplay) return;
    const std::string hint = "a computed model takes the time that it takes" +
                             because("/backend", s_.backend) + "; replay one, or stall its loader";
    if (spec_.compute_spread != 0) fail("compute/spread", spec_.compute_spread, "0", hint);
    if (spec_.compute_jitter != 0) fail("compute/jitter", spec_.compute_jitter, "0", hint);
    if (!spec_.slow_ranks.empty()) {
      fail("slow_ranks/0/factor", spec_.slow_ranks.front().factor, "no slow ranks", hint);
    }
  }

  std::string because(const std::string& pointer, const Json& value) const {
    return " (" + document_.mention(pointer, value) + ")";
  }

  [[noreturn]] void fail(const std::string& place, const Json& value, const std::string& expected,
                         const std::string& hint = {}) const {
    document_.fail("/imperfections/" + place, expected, hint, value);
  }

  const ScenarioDocument& document_;
  const Scenario& s_;
  const ImperfectionSpec& spec_;
  const BackendDescriptor& backend_;
};

}  // namespace

void check_imperfections(const ScenarioDocument& document, const Scenario& scenario) {
  ImperfectionChecks(document, scenario).run();
}

}  // namespace gradsync::scenario_table
