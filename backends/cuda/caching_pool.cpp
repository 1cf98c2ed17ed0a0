#include "gradsync/backends/cuda/caching_pool.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {

CachingPool::~CachingPool() {
  release_cached();
}

Bytes CachingPool::block_size(Bytes nbytes) noexcept {
  constexpr Bytes kSmall = Bytes{1} << 20;
  const Bytes unit = nbytes <= kSmall ? 512 : 2 * kSmall;
  return (std::max<Bytes>(nbytes, 1) + unit - 1) / unit * unit;
}

void* CachingPool::allocate(Bytes nbytes) {
  const Bytes size = block_size(nbytes);
  const std::lock_guard lock(mutex_);
  void* memory = nullptr;
  if (const auto found = cached_.find(size); found != cached_.end() && !found->second.empty()) {
    memory = found->second.back();
    found->second.pop_back();
    statistics_.cached -= size;
  } else {
    ++statistics_.source_calls;
    memory = source_.allocate(size);
    if (memory == nullptr) {
      release_cached();
      memory = source_.allocate(size);
    }
  }
  if (memory == nullptr) {
    throw Error(ErrorCode::kInternal,
                fmt::format("out of GPU memory: {} wanted, {} in use by this rank; take a smaller "
                            "batch or model, or fewer ranks on this GPU",
                            format_bytes_human(size), format_bytes_human(statistics_.in_use)));
  }
  statistics_.in_use += size;
  return memory;
}

void CachingPool::give_back(void* memory, Bytes nbytes) {
  const Bytes size = block_size(nbytes);
  const std::lock_guard lock(mutex_);
  cached_[size].push_back(memory);
  statistics_.in_use -= size;
  statistics_.cached += size;
}

CachingPool::Statistics CachingPool::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void CachingPool::release_cached() {
  for (auto& [size, blocks] : cached_) {
    for (void* block : blocks) source_.release(block);
    blocks.clear();
  }
  statistics_.cached = 0;
}

}  // namespace gradsync
