#include "gradsync/data/data_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gradsync/core/error.hpp"

namespace gradsync {

DataLoader::DataLoader(const Dataset& dataset, DistributedSampler sampler, std::int64_t batch_size,
                       Device& device)
    : dataset_(&dataset), sampler_(std::move(sampler)), batch_size_(batch_size), device_(&device) {
  if (batch_size < 1) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("DataLoader: batch_size must be at least 1, got {}", batch_size));
  }
}

void DataLoader::start_epoch(std::int64_t epoch) {
  sampler_.set_epoch(epoch);
  order_ = sampler_.indices();
  position_ = 0;
}

std::optional<Batch> DataLoader::next() {
  const std::size_t left = order_.size() - position_;
  if (left == 0) return std::nullopt;
  const std::size_t count = std::min(left, static_cast<std::size_t>(batch_size_));
  const std::span<const std::int64_t> indices(order_.data() + position_, count);
  position_ += count;
  Batch batch = dataset_->collate(indices, *device_);
  batch.sample_indices.assign(indices.begin(), indices.end());
  return batch;
}

std::int64_t DataLoader::batches_left() const noexcept {
  return (std::ssize(order_) - static_cast<std::int64_t>(position_) + batch_size_ - 1) /
         batch_size_;
}

std::int64_t DataLoader::batches_per_epoch() const noexcept {
  return (sampler_.num_samples() + batch_size_ - 1) / batch_size_;
}

}  // namespace gradsync
