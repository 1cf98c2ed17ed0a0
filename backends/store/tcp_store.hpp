#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gradsync/backends/store/store.hpp"

namespace gradsync {

/// Client of a TCP store: our TcpStoreServer or PyTorch's TCPStore server (c10d, PyTorch 2.x),
/// whose wire protocol it speaks. Under torchrun with TORCHELASTIC_USE_AGENT_STORE=True, a rank
/// uses it to join the agent's store.
///
/// Holds a pool of connections: a call takes an idle one or opens another, so a blocked call never
/// delays a call of another thread. The protocol is described in store_protocol.hpp.
class TcpStore final : public Store {
 public:
  /// Connects, retrying with jittered, growing pauses until the server answers. After `timeout`,
  /// throws Error(kTimeout) with the address and the last reason.
  TcpStore(std::string host, std::uint16_t port, Seconds timeout);
  ~TcpStore() override;
  TcpStore(const TcpStore&) = delete;
  TcpStore& operator=(const TcpStore&) = delete;

  void set(const std::string& key, std::string_view value, Seconds timeout) override;
  std::string get(const std::string& key, Seconds timeout) override;
  void wait(const std::vector<std::string>& keys, Seconds timeout) override;
  std::int64_t add(const std::string& key, std::int64_t amount, Seconds timeout) override;
  std::string compare_set(const std::string& key, std::string_view expected,
                          std::string_view desired, Seconds timeout) override;
  bool check(const std::vector<std::string>& keys, Seconds timeout) override;
  bool remove(const std::string& key, Seconds timeout) override;

  /// Closes every connection: calls blocked in other threads, and all later calls, throw
  /// Error(kInternal). May be called from any thread, repeatedly.
  void close();

  /// "host:port", for messages.
  const std::string& address() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradsync
