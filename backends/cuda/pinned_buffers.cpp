#include "gradsync/backends/cuda/pinned_buffers.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {

PinnedBuffers::~PinnedBuffers() {
  for (const Buffer& buffer : idle_) api_->release_pinned(buffer.data);
}

PinnedBuffers::Buffer PinnedBuffers::take(Bytes nbytes) {
  for (auto candidate = idle_.begin(); candidate != idle_.end(); ++candidate) {
    if (candidate->nbytes < nbytes) continue;
    if (candidate->last_use && !api_->is_done(candidate->last_use.get())) continue;
    Buffer buffer = std::move(*candidate);
    idle_.erase(candidate);
    return buffer;
  }
  constexpr Bytes kSmallest = 64 * 1024;
  const Bytes size = std::max(kSmallest, nbytes);
  void* memory = api_->allocate_pinned(size);
  if (memory == nullptr) {
    throw Error(ErrorCode::kInternal, fmt::format("no {} of page-locked host memory are to be had",
                                                  format_bytes_human(size)));
  }
  return {static_cast<std::byte*>(memory), size, nullptr};
}

void PinnedBuffers::used(Buffer buffer, CudaStream stream) {
  if (!buffer.last_use) buffer.last_use = take_event(events_);
  api_->record(buffer.last_use.get(), stream);
  idle_.push_back(std::move(buffer));
}

}  // namespace gradsync
