#pragma once

#include "gradsync/backends/store/tcp_store.hpp"
#include "gradsync/backends/store/tcp_store_server.hpp"
#include "gradsync/core/units.hpp"

namespace gradsync::test {

/// A timeout that only a failing test reaches.
inline constexpr Seconds kPlenty{60};

/// A store server on a free port of this machine, and clients of it.
struct ServerOnLoopback {
  TcpStoreServer server{{.bind_address = "127.0.0.1", .port = 0}};
  TcpStore client() { return TcpStore("127.0.0.1", server.port(), kPlenty); }
};

}  // namespace gradsync::test
