#pragma once

#include <deque>
#include <memory>

#include "gradsync/backends/cuda/cuda_events.hpp"

namespace gradsync {

/// Page-locked staging buffers between host tensors and the GPU. An asynchronous copy from pageable
/// memory would block the host until the stream reaches it. A buffer is reused once its copy has
/// completed. Used by one thread.
class PinnedBuffers {
 public:
  struct Buffer {
    std::byte* data;
    Bytes nbytes;
    EventPtr last_use;  ///< null if never used
  };

  PinnedBuffers(CudaApi& api, std::shared_ptr<EventPool> events)
      : api_(&api), events_(std::move(events)) {}
  ~PinnedBuffers();
  PinnedBuffers(const PinnedBuffers&) = delete;
  PinnedBuffers& operator=(const PinnedBuffers&) = delete;

  /// Takes a buffer of at least `nbytes` that no copy is using; the caller owns it until `used`.
  Buffer take(Bytes nbytes);
  /// Returns the buffer; work that is in `stream` now still uses it.
  void used(Buffer buffer, CudaStream stream);

 private:
  CudaApi* api_;
  std::shared_ptr<EventPool> events_;
  std::deque<Buffer> idle_;  // least recently used first
};

}  // namespace gradsync
