#include "gradsync/data/dataset.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/core/random.hpp"

namespace gradsync {
namespace {

/// Datasets whose samples are seq_len + 1 tokens: the model sees the first seq_len and predicts the
/// last seq_len.
class TokenDataset : public Dataset {
 public:
  TokenDataset(std::int64_t samples, std::int64_t seq_len) : samples_(samples), seq_len_(seq_len) {}

  std::int64_t size() const final { return samples_; }

  Batch collate(std::span<const std::int64_t> indices, Device& device) const final {
    const auto rows = static_cast<std::int64_t>(indices.size());
    std::vector<std::int64_t> inputs;
    std::vector<std::int64_t> targets;
    inputs.reserve(static_cast<std::size_t>(rows * seq_len_));
    targets.reserve(static_cast<std::size_t>(rows * seq_len_));
    for (const std::int64_t sample : indices) {
      for (std::int64_t t = 0; t < seq_len_; ++t) {
        inputs.push_back(token(sample, t));
        targets.push_back(token(sample, t + 1));
      }
    }
    Batch batch;
    batch.tensors.set("tokens", on_device(inputs, {rows, seq_len_}, device));
    batch.tensors.set("targets", on_device(targets, {rows, seq_len_}, device));
    return batch;
  }

 protected:
  std::int64_t seq_len() const noexcept { return seq_len_; }

 private:
  virtual std::int64_t token(std::int64_t sample, std::int64_t position) const = 0;

  static Tensor on_device(const std::vector<std::int64_t>& values, Shape shape, Device& device) {
    Tensor tensor = Tensor::empty(std::move(shape), DType::kInt64, device);
    if (!tensor.is_meta()) device.copy_from_host(tensor, std::as_bytes(std::span(values)));
    return tensor;
  }

  std::int64_t samples_;
  std::int64_t seq_len_;
};

class SyntheticTokens final : public TokenDataset {
 public:
  SyntheticTokens(std::int64_t samples, std::int64_t seq_len, std::int64_t vocab_size,
                  std::uint64_t seed)
      : TokenDataset(samples, seq_len),
        vocab_size_(static_cast<std::uint64_t>(vocab_size)),
        seed_(seed) {}

 private:
  std::int64_t token(std::int64_t sample, std::int64_t position) const override {
    const CounterRandom random(seed_, static_cast<std::uint64_t>(sample));
    const std::uint64_t bits = random.bits(static_cast<std::uint64_t>(position));
    return static_cast<std::int64_t>((bits >> 33) % vocab_size_);
  }

  std::uint64_t vocab_size_;
  std::uint64_t seed_;
};

class TextBytes final : public TokenDataset {
 public:
  TextBytes(std::vector<char> text, std::int64_t seq_len)
      : TokenDataset((static_cast<std::int64_t>(text.size()) - 1) / seq_len, seq_len),
        text_(std::move(text)) {}

 private:
  std::int64_t token(std::int64_t sample, std::int64_t position) const override {
    const auto offset = static_cast<std::size_t>(sample * seq_len() + position);
    return static_cast<unsigned char>(text_[offset]);
  }

  std::vector<char> text_;
};

class IndexDataset final : public Dataset {
 public:
  explicit IndexDataset(std::int64_t samples) : samples_(samples) {}
  std::int64_t size() const override { return samples_; }
  Batch collate(std::span<const std::int64_t>, Device&) const override { return {}; }

 private:
  std::int64_t samples_;
};

void require_positive(std::int64_t value, const char* what) {
  if (value < 1) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("data set: {} must be at least 1, got {}", what, value));
  }
}

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes;
  if (file) bytes.assign(std::istreambuf_iterator<char>(file), {});
  // Opening a folder succeeds, but reading it fails.
  if (!file || file.bad()) {
    throw ConfigError({.file = path,
                       .pointer = "",
                       .expected = "a text file that can be read",
                       .found = std::strerror(errno),
                       .hint = ""});
  }
  return bytes;
}

}  // namespace

std::unique_ptr<Dataset> make_synthetic_tokens(std::int64_t samples, std::int64_t seq_len,
                                               std::int64_t vocab_size, std::uint64_t seed) {
  require_positive(samples, "samples");
  require_positive(seq_len, "seq_len");
  require_positive(vocab_size, "vocab_size");
  return std::make_unique<SyntheticTokens>(samples, seq_len, vocab_size, seed);
}

std::unique_ptr<Dataset> make_text_dataset(const std::string& path, std::int64_t seq_len) {
  require_positive(seq_len, "seq_len");
  std::vector<char> text = read_file(path);
  if (static_cast<std::int64_t>(text.size()) <= seq_len) {
    throw ConfigError(
        {.file = path,
         .pointer = "",
         .expected = fmt::format("a text of at least seq_len + 1 = {} bytes", seq_len + 1),
         .found = text.empty() ? "an empty file" : fmt::format("{} bytes", text.size()),
         .hint = text.empty() ? "" : "use a longer text or a smaller seq_len"});
  }
  return std::make_unique<TextBytes>(std::move(text), seq_len);
}

std::unique_ptr<Dataset> make_index_dataset(std::int64_t samples) {
  require_positive(samples, "samples");
  return std::make_unique<IndexDataset>(samples);
}

}  // namespace gradsync
