#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// Server of the TCP store, speaking the wire protocol of PyTorch's TCPStore (c10d, PyTorch 2.x).
/// Serves any number of clients from its own thread until it is destroyed.
///
/// Malformed input closes only the connection it came from. Keys are at most 8 KiB, values at most
/// 256 MiB, and a request names at most 131072 keys.
class TcpStoreServer {
 public:
  struct Options {
    /// Address to listen on; empty: all interfaces (dual-stack IPv6 and IPv4 if available).
    std::string bind_address;
    std::uint16_t port = 0;  ///< 0: chosen by the system, see port()
  };

  /// Throws Error(kBackendUnavailable) naming the address if it cannot listen on it.
  explicit TcpStoreServer(const Options& options);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  std::uint16_t port() const noexcept;

  /// Blocks until no client is connected; returns false on `timeout`. The store's host calls it
  /// before it exits, so that the others receive their last answers.
  bool wait_until_idle(Seconds timeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradsync
