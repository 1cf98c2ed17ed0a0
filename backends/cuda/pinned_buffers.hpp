#pragma once

#include <deque>
#include <memory>

#include "gradsync/backends/cuda/cuda_events.hpp"

namespace gradsync {

/// Page-locked host memory between the host's tensors and the GPU. A copy from ordinary memory
/// would hold the host up until the stream gets to it; from here it does not: a buffer is used
/// again when its copy is done. Used by one thread.
class PinnedBuffers {
 public:
  struct Buffer {
    std::byte* data;
    Bytes nbytes;
    EventPtr last_use;  ///< null when it has not been used
  };

  PinnedBuffers(CudaApi& api, std::shared_ptr<EventPool> events)
      : api_(&api), events_(std::move(events)) {}
  ~PinnedBuffers();
  PinnedBuffers(const PinnedBuffers&) = delete;
  PinnedBuffers& operator=(const PinnedBuffers&) = delete;

  /// One of at least `nbytes` that no copy is using; the caller owns it until `used`.
  Buffer take(Bytes nbytes);
  /// Gives it back; what is in `stream` now still uses it.
  void used(Buffer buffer, CudaStream stream);

 private:
  CudaApi* api_;
  std::shared_ptr<EventPool> events_;
  std::deque<Buffer> idle_;  // least recently used first
};

}  // namespace gradsync
