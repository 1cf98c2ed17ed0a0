#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// Device memory that is kept for the next tensor: cudaMalloc and cudaFree take long, and the
/// latter waits for the whole device.
///
/// All users of the memory work in the order of one stream, so a block may be handed out again as
/// soon as the host gives it back: what is still running on it comes first. A user on another
/// stream (a collective) must have been waited for in that order before its block comes back.
///
/// Blocks are rounded up (to 512 bytes, above 1 MiB to 2 MiB) and neither split nor joined.
/// Thread-safe.
class CachingPool {
 public:
  struct Source {
    std::function<void*(Bytes)> allocate;  ///< null when there is not enough
    std::function<void(void*)> release;
  };
  struct Statistics {
    Bytes in_use = 0;
    Bytes cached = 0;  ///< held, in nobody's use
    std::int64_t source_calls = 0;
  };

  explicit CachingPool(Source source) : source_(std::move(source)) {}
  ~CachingPool();
  CachingPool(const CachingPool&) = delete;
  CachingPool& operator=(const CachingPool&) = delete;

  /// Never null. When the source has no more, all that is cached goes back to it first; if even
  /// then it does not suffice: Error(kInternal) with the sizes.
  void* allocate(Bytes nbytes);
  /// `nbytes` as it was asked for.
  void give_back(void* memory, Bytes nbytes);

  Statistics statistics() const;

  static Bytes block_size(Bytes nbytes) noexcept;

 private:
  void release_cached();

  mutable std::mutex mutex_;
  Source source_;
  std::map<Bytes, std::vector<void*>> cached_;  // by size of block
  Statistics statistics_;
};

}  // namespace gradsync
