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

/// Buffers whose waits can be ended from another thread.
///
/// Gloo ends a wait when the connection breaks or the wait's own timeout comes, but not when a
/// message had been received in part: then the timeout has to pass. A rank must stop within a
/// second of any failure, so every buffer that a collective waits on, the scratch buffers inside
/// Gloo's algorithms included, is wrapped in one that this process can abort. The wrapper also
/// gives a collective one deadline as a whole (Gloo's is per wait), and says which rank was waited
/// for.

/// A transfer that did not happen.
class TransferError : public std::runtime_error {
 public:
  enum class Reason { kTimeout, kConnection, kAborted };
  TransferError(Reason why, int peer_rank, const std::string& text)
      : std::runtime_error(text), reason(why), peer(peer_rank) {}
  const Reason reason;
  const int peer;  ///< the rank that data was expected from or sent to; -1 if not known
};

using GlooDeadline = std::chrono::steady_clock::time_point;

/// The buffers that are in use, so that all can be aborted. Thread-safe.
class BufferRegistry {
 public:
  void add(gloo::transport::UnboundBuffer& buffer);
  void remove(gloo::transport::UnboundBuffer& buffer);
  /// Ends all waits, now and later, with TransferError(kAborted).
  void abort_all();
  bool aborted() const;

 private:
  mutable std::mutex mutex_;
  bool aborted_ = false;
  std::unordered_set<gloo::transport::UnboundBuffer*> buffers_;
};

/// A context over the connections of `connected`, all of whose buffers are abortable and end at
/// `deadline`, those that Gloo's algorithms make for themselves included.
std::shared_ptr<gloo::Context> make_abortable_context(std::shared_ptr<gloo::Context> connected,
                                                      std::shared_ptr<BufferRegistry> registry,
                                                      GlooDeadline deadline);

}  // namespace gradsync
