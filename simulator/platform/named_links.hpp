#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/simulator/kernel/sim_engine.hpp"

namespace gradsync {

using LinkList = std::vector<simgrid_compat::s4u::Link*>;

/// The link called `name`, in both directions or one ("nic-1-0", "nic-1-0_UP"), or, if `node` is
/// given, all network adapters of that node. Throws ConfigError if there is none; `place` is the
/// JSON pointer of the object with "link" or "node".
LinkList find_links(SimEngine& engine, const std::string& name, std::optional<std::int64_t> node,
                    const std::string& place);

}  // namespace gradsync
