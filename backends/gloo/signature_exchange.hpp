#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/backends/gloo/abortable_buffers.hpp"

namespace gradsync {

/// A signature as it is sent: shortened where it is too long, such that different signatures stay
/// different.
class SignatureMessage {
 public:
  SignatureMessage() = default;
  explicit SignatureMessage(const std::string& signature);
  std::string str() const;

 private:
  static constexpr std::size_t kMaxText = 254;
  std::uint16_t length_ = 0;
  std::array<char, kMaxText> text_{};
};

/// Sends the signature of each collective to the right neighbor (rank + 1) and receives the left
/// neighbor's. If all neighbors agree, all ranks agree.
///
/// Receives are posted a window ahead, so a signature takes a single message, and sends complete
/// before the neighbor arrives (a broadcast's root may run ahead). Thread-safe for calls with
/// different sequence numbers.
class SignatureExchange {
 public:
  SignatureExchange(std::shared_ptr<gloo::Context> connected,
                    std::shared_ptr<BufferRegistry> registry);

  int left_neighbour() const noexcept { return left_; }

  /// Sends the signature of collective `sequence` to the right neighbor and receives the left
  /// neighbor's. Returns the received one if they differ. Throws TransferError.
  std::optional<std::string> exchange(std::int64_t sequence, const std::string& signature,
                                      std::chrono::milliseconds timeout);

 private:
  static constexpr std::size_t kWindow = 64;
  struct Entry {
    SignatureMessage outgoing;
    SignatureMessage incoming;
    bool sent = false;
    std::unique_ptr<gloo::transport::UnboundBuffer> send_buffer;
    std::unique_ptr<gloo::transport::UnboundBuffer> receive_buffer;
  };

  Entry& entry(std::int64_t sequence) {
    return window_[static_cast<std::size_t>(sequence) % kWindow];
  }
  void post_receive(std::int64_t sequence);

  int left_;
  int right_;
  std::vector<Entry> window_{kWindow};
};

}  // namespace gradsync
