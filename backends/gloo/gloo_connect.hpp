#pragma once

#include <memory>
#include <string>

#include <gloo/context.h>

#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/backends/store/store.hpp"

namespace gradsync {

/// Connects this rank with every other over TCP and returns Gloo's context. All ranks call it, with
/// the same store and the same `key_prefix`, which no earlier context may have used.
///
/// Listens on `interface`; where that is empty on the one that GLOO_SOCKET_IFNAME names, else on
/// the one through which MASTER_ADDR is reached. Throws ConnectError where a connection does not
/// come about, or not in time, Error(kUsage) where the address cannot work. `wrong_address`: a
/// fault; the others are given an address that leads nowhere.
std::shared_ptr<gloo::Context> connect_gloo(const RankEnvironment& environment,
                                            std::shared_ptr<Store> store,
                                            const std::string& key_prefix,
                                            const std::string& interface, Seconds timeout,
                                            bool wrong_address = false);

}  // namespace gradsync
