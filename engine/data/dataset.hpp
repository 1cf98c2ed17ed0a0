#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gradsync/data/batch.hpp"
#include "gradsync/tensor/device.hpp"

namespace gradsync {

/// Samples addressed by index; a program implements it for samples of its own. Immutable and
/// thread-safe: ranks of one process may share it.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Number of samples, the same on every rank.
  virtual std::int64_t size() const = 0;
  /// The tensors of the samples at `indices` (0 <= index < size), one row a sample in that order,
  /// on `device`. The DataLoader adds the indices.
  virtual Batch collate(std::span<const std::int64_t> indices, Device& device) const = 0;
};

/// Samples in memory: sample i is row i of every tensor (torch.utils.data.TensorDataset), and a
/// batch has the same names. Throws Error(kMisuse) for no tensor, one that is not on the CPU, or
/// numbers of rows that differ.
std::unique_ptr<Dataset> make_tensor_dataset(NamedTensors samples);

/// `samples` sequences of `seq_len` token ids below `vocab_size`; "targets" are "tokens" shifted by
/// one. A token is a function of (seed, sample, position) alone, so any rank can make any
/// sample and no machine differs.
std::unique_ptr<Dataset> make_synthetic_tokens(std::int64_t samples, std::int64_t seq_len,
                                               std::int64_t vocab_size, std::uint64_t seed);

/// The bytes of a file as token ids (vocabulary 256). Sample i has the "tokens" bytes[i*seq_len,
/// ...) and the "targets" shifted by one byte; a last piece that is too short is left out. Throws
/// ConfigError for a file that is missing, not readable, empty, or shorter than seq_len + 1 bytes.
std::unique_ptr<Dataset> make_text_dataset(const std::string& path, std::int64_t seq_len);

/// Samples without content, for replayed models: batches carry their indices alone.
std::unique_ptr<Dataset> make_index_dataset(std::int64_t samples);

}  // namespace gradsync
