#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gradsync/models/model.hpp"
#include "gradsync/tensor/device.hpp"

namespace gradsync {

/// Samples addressed by index. Immutable and thread-safe: ranks of one process may share it.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// The samples at `indices` as one batch on `device`, in that order. Sets everything of Batch but
  /// `global_step`.
  virtual Batch collate(std::span<const std::int64_t> indices, Device& device) const = 0;
};

/// `samples` sequences of `seq_len` token ids below `vocab_size`; targets are the inputs shifted by
/// one token. A token is a function of (seed, sample, position) alone, so any rank can make any
/// sample and no machine differs.
std::unique_ptr<Dataset> make_synthetic_tokens(std::int64_t samples, std::int64_t seq_len,
                                               std::int64_t vocab_size, std::uint64_t seed);

/// The bytes of a file as token ids (vocabulary 256). Sample i has inputs bytes[i*seq_len, ...) and
/// targets shifted by one byte; a last piece that is too short is left out. Throws ConfigError for
/// a file that is missing, not readable, empty, or shorter than seq_len + 1 bytes.
std::unique_ptr<Dataset> make_text_dataset(const std::string& path, std::int64_t seq_len);

/// Samples without content, for replayed models: batches carry their indices alone.
std::unique_ptr<Dataset> make_index_dataset(std::int64_t samples);

}  // namespace gradsync
