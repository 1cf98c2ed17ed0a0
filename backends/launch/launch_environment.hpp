#pragma once

#include <map>
#include <string>

#include "gradsync/backends/launch/launcher.hpp"

namespace gradsync {

/// The variables that torchrun sets for its workers, for the rank `local_rank` of this node. `host`
/// and `port` are the address of the store. options.env overrides them.
std::map<std::string, std::string> rank_variables(const LaunchOptions& options, int local_rank,
                                                  const std::string& host, int port);

}  // namespace gradsync
