#pragma once

#include <array>
#include <span>

#include "gradsync/backends/cuda/kernels/launch.cuh"

namespace gradsync::cuda {

/// The tensors of one launch. They are passed as kernel parameters, which may be 4 KiB on every
/// CUDA version and GPU.
template <typename Item>
struct Batch {
  static constexpr std::size_t kCapacity = 3584 / sizeof(Item);
  Item items[kCapacity];
};

/// Calls `run(batch, items, longest)` for as many tensors at a time as fit, skipping empty ones. A
/// kernel processes tensor blockIdx.y.
template <typename Item, typename Run>
void for_each_batch(std::span<const Item> items, Run run) {
  Batch<Item> batch{};
  std::size_t count = 0;
  std::int64_t longest = 0;
  const auto flush = [&] {
    if (count > 0) run(batch, static_cast<unsigned>(count), longest);
    count = 0;
    longest = 0;
  };
  for (const Item& item : items) {
    if (item.count == 0) continue;
    batch.items[count++] = item;
    longest = std::max(longest, item.count);
    if (count == Batch<Item>::kCapacity) flush();
  }
  flush();
}

/// Blocks per tensor of a batch.
inline constexpr std::int64_t kMostBlocksOfItem = 256;

}  // namespace gradsync::cuda
