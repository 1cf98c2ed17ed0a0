#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/data/dataset.hpp"

namespace gradsync {
namespace {

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(ErrorCode::kMisuse, "data set of tensors: " + reason);
}

std::int64_t rows_of(const NamedTensors::Entry& entry) {
  const auto& [name, tensor] = entry;
  if (!tensor.defined() || tensor.device().type() != DeviceType::kCpu) {
    refuse("\"" + name + "\" is not on the CPU");
  }
  if (tensor.shape().empty()) refuse("\"" + name + "\" is a scalar, without rows");
  return tensor.shape().front();
}

/// Stacks the rows of `from` at `indices`.
Tensor gather_rows(const Tensor& from, std::span<const std::int64_t> indices, Device& device) {
  Shape shape = from.shape();
  shape.front() = std::ssize(indices);
  Tensor rows = Tensor::empty(std::move(shape), from.dtype(), device);
  if (rows.is_meta()) return rows;
  const auto row_bytes = static_cast<std::size_t>(from.nbytes() / from.shape().front());
  std::vector<std::byte> bytes(indices.size() * row_bytes);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::memcpy(bytes.data() + i * row_bytes,
                from.data() + static_cast<std::size_t>(indices[i]) * row_bytes, row_bytes);
  }
  device.copy_from_host(rows, bytes);
  return rows;
}

class TensorDataset final : public Dataset {
 public:
  explicit TensorDataset(NamedTensors samples) : samples_(std::move(samples)) {
    if (samples_.empty()) refuse("it needs at least one tensor");
    const NamedTensors::Entry& first = *samples_.begin();
    size_ = rows_of(first);
    if (size_ < 1) refuse("\"" + first.first + "\" has no rows");
    for (const NamedTensors::Entry& entry : samples_) {
      if (rows_of(entry) == size_) continue;
      refuse("\"" + first.first + "\" is " + to_string(first.second.shape()) + " and \"" +
             entry.first + "\" " + to_string(entry.second.shape()) +
             "; all need as many rows as there are samples");
    }
  }

  std::int64_t size() const override { return size_; }

  Batch collate(std::span<const std::int64_t> indices, Device& device) const override {
    Batch batch;
    for (const auto& [name, tensor] : samples_) {
      batch.tensors.set(name, gather_rows(tensor, indices, device));
    }
    return batch;
  }

 private:
  NamedTensors samples_;
  std::int64_t size_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> make_tensor_dataset(NamedTensors samples) {
  return std::make_unique<TensorDataset>(std::move(samples));
}

}  // namespace gradsync
