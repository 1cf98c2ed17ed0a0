#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// Caches freed device memory for later tensors: cudaMalloc and cudaFree are slow, and cudaFree
/// waits for the whole device.
///
/// All users of the memory are ordered by one stream, so a freed block may be reused as soon as the
/// host returns it: work still using it is earlier in the stream. If another stream uses a block (a
/// collective), the pool's stream must wait for that stream before the block is returned.
///
/// Block sizes are rounded up (to 512 bytes; above 1 MiB, to 2 MiB); blocks are neither split nor
/// merged. Thread-safe.
class CachingPool {
 public:
  struct Source {
    std::function<void*(Bytes)> allocate;  ///< null if there is not enough memory
    std::function<void(void*)> release;
  };
  struct Statistics {
    Bytes in_use = 0;
    Bytes cached = 0;  ///< free blocks held by the pool
    std::int64_t source_calls = 0;
  };

  explicit CachingPool(Source source) : source_(std::move(source)) {}
  ~CachingPool();
  CachingPool(const CachingPool&) = delete;
  CachingPool& operator=(const CachingPool&) = delete;

  /// Never null. If the source is out of memory, returns all cached blocks to it and retries; if
  /// that fails, throws Error(kInternal) with the sizes.
  void* allocate(Bytes nbytes);
  /// `nbytes` must be the size that was requested.
  void give_back(void* memory, Bytes nbytes);

  Statistics statistics() const;

  static Bytes block_size(Bytes nbytes) noexcept;

 private:
  void release_cached();

  mutable std::mutex mutex_;
  Source source_;
  std::map<Bytes, std::vector<void*>> cached_;  // by block size
  Statistics statistics_;
};

}  // namespace gradsync
