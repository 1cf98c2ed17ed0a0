#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gradsync/data/batch.hpp"
#include "gradsync/tensor/device.hpp"

namespace gradsync {

/// Samples addressed by index; implement it to train on your own data. Immutable and thread-safe:
/// ranks of one process may share it.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Number of samples, the same on every rank.
  virtual std::int64_t size() const = 0;
  /// The tensors of the samples at `indices` (0 <= index < size), one row per sample in that order,
  /// on `device`. The DataLoader adds the indices.
  virtual Batch collate(std::span<const std::int64_t> indices, Device& device) const = 0;
};

/// In-memory samples: sample i is row i of every tensor (torch.utils.data.TensorDataset), and
/// batches use the same names. Throws Error(kMisuse) if there is no tensor, a tensor is not on the
/// CPU, or the numbers of rows differ.
std::unique_ptr<Dataset> make_tensor_dataset(NamedTensors samples);

/// `samples` sequences of `seq_len` token ids below `vocab_size`; "targets" are "tokens" shifted by
/// one. A token depends only on (seed, sample, position), so any rank can generate any sample,
/// identically on every machine.
std::unique_ptr<Dataset> make_synthetic_tokens(std::int64_t samples, std::int64_t seq_len,
                                               std::int64_t vocab_size, std::uint64_t seed);

/// The bytes of a file as token ids (vocabulary 256). Sample i has the "tokens" bytes[i*seq_len,
/// ...) and the "targets" shifted by one byte; an incomplete last sample is dropped. Throws
/// ConfigError for a file that is missing, unreadable, empty, or shorter than seq_len + 1 bytes.
std::unique_ptr<Dataset> make_text_dataset(const std::string& path, std::int64_t seq_len);

/// Samples without content, for replayed models: batches carry only their indices.
std::unique_ptr<Dataset> make_index_dataset(std::int64_t samples);

}  // namespace gradsync
