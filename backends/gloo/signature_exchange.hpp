#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/backends/gloo/abortable_buffers.hpp"

namespace gradsync {

/// Tells the right neighbour (rank + 1) what each collective of this rank is, and learns from the
/// left one. Where all neighbours agree, all ranks do.
///
/// Receives are posted a window ahead, so that a signature travels in one message when its time has
/// come, and sends complete without the neighbour being there yet (a broadcast's root may run
/// ahead). Thread-safe for calls with different sequence numbers.
class SignatureExchange {
 public:
  SignatureExchange(std::shared_ptr<gloo::Context> connected,
                    std::shared_ptr<BufferRegistry> registry);

  int left_neighbour() const noexcept { return left_; }

  /// Sends the signature of collective `sequence` to the right, receives the left neighbour's, and
  /// returns that if the two differ. Throws TransferError.
  std::optional<std::string> exchange(std::int64_t sequence, const std::string& signature,
                                      std::chrono::milliseconds timeout);

 private:
  static constexpr std::size_t kMaxText = 254;
  static constexpr std::size_t kWindow = 64;
  struct Message {
    std::uint16_t length = 0;
    std::array<char, kMaxText> text{};
  };
  struct Entry {
    Message outgoing;
    Message incoming;
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
