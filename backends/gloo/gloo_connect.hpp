#pragma once

#include <memory>
#include <string>

#include <gloo/context.h>

#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/backends/store/store.hpp"

namespace gradsync {

/// Connects this rank to all others over TCP and returns Gloo's context. All ranks call it, with
/// the same store and the same `key_prefix`, which no earlier context may have used.
///
/// Listens on `interface`; if empty, on the one named by GLOO_SOCKET_IFNAME, otherwise on the one
/// that routes to MASTER_ADDR. Throws ConnectError if a connection fails or times out, and
/// Error(kUsage) if the address cannot work. `wrong_address` injects a fault: the rank publishes an
/// unreachable address.
std::shared_ptr<gloo::Context> connect_gloo(const RankEnvironment& environment,
                                            std::shared_ptr<Store> store,
                                            const std::string& key_prefix,
                                            const std::string& interface, Seconds timeout,
                                            bool wrong_address = false);

}  // namespace gradsync
