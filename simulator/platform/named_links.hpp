#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/simulator/kernel/sim_engine.hpp"

namespace gradsync {

using LinkList = std::vector<simgrid_compat::s4u::Link*>;

/// The link that is called `name`, in both directions or one ("nic-1-0", "nic-1-0_UP"), or where
/// `node` is given all network adapters of that node. Throws ConfigError where there is none;
/// `place` is the JSON pointer of the object that has "link" or "node".
LinkList find_links(SimEngine& engine, const std::string& name, std::optional<std::int64_t> node,
                    const std::string& place);

}  // namespace gradsync
