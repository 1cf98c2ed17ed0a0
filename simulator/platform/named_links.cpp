#include "gradsync/simulator/platform/named_links.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/scenario/scenario_hints.hpp"

namespace gradsync {
namespace {

/// Whether a link belongs to the cable of this name or is itself called so.
bool is_called(const std::string& link, const std::string& name) {
  return link == name || link == name + "_UP" || link == name + "_DOWN";
}

/// The link's name without its direction.
std::string cable_name(std::string link) {
  for (const char* direction : {"_UP", "_DOWN"}) {
    if (link.ends_with(direction)) link.resize(link.size() - std::string(direction).size());
  }
  return link;
}

}  // namespace

LinkList find_links(SimEngine& engine, const std::string& name, std::optional<std::int64_t> node,
                    const std::string& place) {
  LinkList found;
  std::vector<std::string> names;
  const std::string of_node = node ? fmt::format("nic-{}-", *node) : "";
  for (simgrid_compat::s4u::Link* link : engine.simgrid().get_all_links()) {
    const std::string called = link->get_name();
    names.push_back(cable_name(called));
    const bool is_meant = node ? called.starts_with(of_node) : is_called(called, name);
    if (is_meant) found.push_back(link);
  }
  if (!found.empty()) return found;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (node) {
    throw ConfigError({"", place + "/node", "a node with adapters of its own (star, leaf_spine)",
                       fmt::format("{}", *node),
                       "give the link by its name; one is " + names.front()});
  }
  std::string hint = scenario_table::did_you_mean(name, names);
  if (hint.empty()) hint = "there are " + names.front() + " to " + names.back();
  throw ConfigError({"", place + "/link", fmt::format("one of the {} links", names.size()),
                     "\"" + name + "\"", hint});
}

}  // namespace gradsync
