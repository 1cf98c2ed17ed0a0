#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_set>

#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

namespace gradsync {

/// Gloo buffers whose waits can be aborted from another thread.
///
/// Gloo ends a wait if the connection breaks or the wait times out, but after a partly received
/// message only the timeout ends it. A rank must stop within a second of any failure, so every
/// buffer that a collective waits on, including the scratch buffers inside Gloo's algorithms, is
/// wrapped in one that this process can abort. The wrapper also gives each collective a single
/// deadline (Gloo's timeout is per wait) and reports which rank it was waiting for.

/// A failed transfer.
class TransferError : public std::runtime_error {
 public:
  enum class Reason { kTimeout, kConnection, kAborted };
  TransferError(Reason why, int peer_rank, const std::string& text)
      : std::runtime_error(text), reason(why), peer(peer_rank) {}
  const Reason reason;
  const int peer;  ///< the rank that data was expected from or sent to; -1 if unknown
};

using GlooDeadline = std::chrono::steady_clock::time_point;

/// Tracks all buffers in use, to abort them together. Thread-safe.
class BufferRegistry {
 public:
  void add(gloo::transport::UnboundBuffer& buffer);
  void remove(gloo::transport::UnboundBuffer& buffer);
  /// Fails all waits, current and future, with TransferError(kAborted).
  void abort_all();
  bool aborted() const;

 private:
  mutable std::mutex mutex_;
  bool aborted_ = false;
  std::unordered_set<gloo::transport::UnboundBuffer*> buffers_;
};

/// A context over the connections of `connected`. All its buffers, including those that Gloo's
/// algorithms create, can be aborted and time out at `deadline`.
std::shared_ptr<gloo::Context> make_abortable_context(std::shared_ptr<gloo::Context> connected,
                                                      std::shared_ptr<BufferRegistry> registry,
                                                      GlooDeadline deadline);

}  // namespace gradsync
