#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// Server of the TCP store, speaking the wire protocol of PyTorch's TCPStore (c10d, PyTorch 2.x).
/// Serves any number of clients from one thread of its own until it is destroyed.
///
/// Malformed input closes the connection that it came over and nothing else. Keys are at most 8
/// KiB, values at most 256 MiB, a request names at most 131072 keys.
class TcpStoreServer {
 public:
  struct Options {
    /// Address to listen on; empty: all interfaces (IPv6 with IPv4 where the machine has it).
    std::string bind_address;
    std::uint16_t port = 0;  ///< 0: the system chooses one, see port()
  };

  /// Throws Error(kBackendUnavailable) that names the address when it cannot listen.
  explicit TcpStoreServer(const Options& options);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  std::uint16_t port() const noexcept;

  /// Blocks until no client is connected, or `timeout` ends; true if none is left. Who hosts the
  /// store calls it before leaving, so that the last answers of the others are delivered.
  bool wait_until_idle(Seconds timeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradsync
