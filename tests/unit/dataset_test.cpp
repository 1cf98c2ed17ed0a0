#include "gradsync/data/dataset.hpp"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/data/data_loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using gradsync::Batch;
using gradsync::ConfigError;
using gradsync::cpu_device;
using gradsync::DataLoader;
using gradsync::DistributedSampler;
using gradsync::Shape;
using gradsync::Tensor;
using gradsync::test::contains;
using gradsync::test::TemporaryDirectory;
using Tokens = std::vector<std::int64_t>;

namespace {

Tokens tokens(const Tensor& tensor) {
  const auto elements = tensor.span<std::int64_t>();
  return {elements.begin(), elements.end()};
}

std::string write_file(const TemporaryDirectory& folder, const std::string& name,
                       const std::string& content) {
  const auto path = folder.path() / name;
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

}  // namespace

TEST_CASE("synthetic targets are the inputs shifted by one token") {
  const auto dataset = gradsync::make_synthetic_tokens(8, 5, 100, 42);
  CHECK(dataset->size() == 8);
  const Tokens indices{3, 0};
  const Batch batch = dataset->collate(indices, cpu_device());
  CHECK(batch.sample_indices == indices);
  REQUIRE(batch.inputs.shape() == Shape{2, 5});
  REQUIRE(batch.targets.shape() == Shape{2, 5});
  const Tokens inputs = tokens(batch.inputs);
  const Tokens targets = tokens(batch.targets);
  for (const std::size_t row : {0u, 5u}) {
    for (std::size_t t = 0; t + 1 < 5; ++t) CHECK(targets[row + t] == inputs[row + t + 1]);
  }
  for (const auto token : inputs) CHECK((token >= 0 && token < 100));
}

TEST_CASE("a synthetic sample does not depend on the batch that it is in") {
  const auto dataset = gradsync::make_synthetic_tokens(8, 4, 1000, 1);
  const Tokens together = tokens(dataset->collate(Tokens{1, 6}, cpu_device()).inputs);
  const Tokens alone = tokens(dataset->collate(Tokens{6}, cpu_device()).inputs);
  CHECK(Tokens(together.begin() + 4, together.end()) == alone);
  const auto other_seed = gradsync::make_synthetic_tokens(8, 4, 1000, 2);
  CHECK(tokens(other_seed->collate(Tokens{6}, cpu_device()).inputs) != alone);
}

TEST_CASE("synthetic tokens are the same on every machine") {
  // Computed by a program in Python from the formula.
  const auto dataset = gradsync::make_synthetic_tokens(2, 4, 1000, 0);
  CHECK(tokens(dataset->collate(Tokens{1}, cpu_device()).inputs) == Tokens{959, 986, 857, 709});
}

TEST_CASE("a text is cut into samples of its bytes, targets shifted by one") {
  const TemporaryDirectory folder;
  const auto dataset =
      gradsync::make_text_dataset(write_file(folder, "text", "abcdefgh\xc3\xa9"), 3);
  CHECK(dataset->size() == 3);  // 10 bytes: the tenth is only ever a target
  const Batch batch = dataset->collate(Tokens{0, 2}, cpu_device());
  CHECK(tokens(batch.inputs) == Tokens{'a', 'b', 'c', 'g', 'h', 0xc3});
  CHECK(tokens(batch.targets) == Tokens{'b', 'c', 'd', 'h', 0xc3, 0xa9});
}

TEST_CASE("text files that cannot be used are named with the reason") {
  const TemporaryDirectory folder;
  CHECK_THROWS_WITH(
      gradsync::make_text_dataset(folder.path() / "none", 3),
      contains("none: expected a text file that can be read") && contains("No such file"));
  CHECK_THROWS_WITH(gradsync::make_text_dataset(folder.path(), 3), contains("Is a directory"));
  CHECK_THROWS_WITH(gradsync::make_text_dataset(write_file(folder, "empty", ""), 3),
                    contains("at least seq_len + 1 = 4 bytes, found an empty file"));
  CHECK_THROWS_WITH(gradsync::make_text_dataset(write_file(folder, "short", "abc"), 3),
                    contains("found 3 bytes") && contains("data.seq_len"));
  CHECK(gradsync::make_text_dataset(write_file(folder, "enough", "abcd"), 3)->size() == 1);
}

TEST_CASE("replayed models get indices and no tokens") {
  const auto dataset = gradsync::make_index_dataset(4);
  const Batch batch = dataset->collate(Tokens{2}, gradsync::meta_device());
  CHECK(batch.sample_indices == Tokens{2});
  CHECK_FALSE(batch.inputs.defined());
  CHECK_THROWS_WITH(gradsync::make_index_dataset(0), contains("at least 1"));
}

TEST_CASE("the loader goes through the sampler's order and keeps a smaller last batch") {
  const auto dataset = gradsync::make_index_dataset(10);
  DataLoader loader(*dataset, DistributedSampler(10, 2, 1, {.seed = 3}), 2, cpu_device());
  CHECK(loader.batches_per_epoch() == 3);
  for (const std::int64_t epoch : {0, 1}) {
    loader.start_epoch(epoch);
    DistributedSampler sampler(10, 2, 1, {.seed = 3});
    sampler.set_epoch(epoch);
    std::vector<std::size_t> sizes;
    Tokens seen;
    while (auto batch = loader.next()) {
      sizes.push_back(batch->sample_indices.size());
      seen.insert(seen.end(), batch->sample_indices.begin(), batch->sample_indices.end());
    }
    CHECK(sizes == std::vector<std::size_t>{2, 2, 1});
    CHECK(seen == sampler.indices());
    CHECK_FALSE(loader.next().has_value());
  }
  CHECK_THROWS_WITH(DataLoader(*dataset, DistributedSampler(10, 1, 0), 0, cpu_device()),
                    contains("batch_size"));
}
