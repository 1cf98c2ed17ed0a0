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

std::vector<float> floats(const Tensor& tensor) {
  const auto elements = tensor.span<float>();
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
  REQUIRE(batch.tensors.at("tokens").shape() == Shape{2, 5});
  REQUIRE(batch.tensors.at("targets").shape() == Shape{2, 5});
  const Tokens inputs = tokens(batch.tensors.at("tokens"));
  const Tokens targets = tokens(batch.tensors.at("targets"));
  for (const std::size_t row : {0u, 5u}) {
    for (std::size_t t = 0; t + 1 < 5; ++t) CHECK(targets[row + t] == inputs[row + t + 1]);
  }
  for (const auto token : inputs) CHECK((token >= 0 && token < 100));
}

TEST_CASE("a synthetic sample does not depend on the batch that it is in") {
  const auto dataset = gradsync::make_synthetic_tokens(8, 4, 1000, 1);
  const Tokens together = tokens(dataset->collate(Tokens{1, 6}, cpu_device()).tensors.at("tokens"));
  const Tokens alone = tokens(dataset->collate(Tokens{6}, cpu_device()).tensors.at("tokens"));
  CHECK(Tokens(together.begin() + 4, together.end()) == alone);
  const auto other_seed = gradsync::make_synthetic_tokens(8, 4, 1000, 2);
  CHECK(tokens(other_seed->collate(Tokens{6}, cpu_device()).tensors.at("tokens")) != alone);
}

TEST_CASE("synthetic tokens are the same on every machine") {
  // Computed by a program in Python from the formula.
  const auto dataset = gradsync::make_synthetic_tokens(2, 4, 1000, 0);
  CHECK(tokens(dataset->collate(Tokens{1}, cpu_device()).tensors.at("tokens")) ==
        Tokens{959, 986, 857, 709});
}

TEST_CASE("a text is cut into samples of its bytes, targets shifted by one") {
  const TemporaryDirectory folder;
  const auto dataset =
      gradsync::make_text_dataset(write_file(folder, "text", "abcdefgh\xc3\xa9"), 3);
  CHECK(dataset->size() == 3);  // 10 bytes: the tenth is only ever a target
  const Batch batch = dataset->collate(Tokens{0, 2}, cpu_device());
  CHECK(tokens(batch.tensors.at("tokens")) == Tokens{'a', 'b', 'c', 'g', 'h', 0xc3});
  CHECK(tokens(batch.tensors.at("targets")) == Tokens{'b', 'c', 'd', 'h', 0xc3, 0xa9});
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
                    contains("found 3 bytes") && contains("smaller seq_len"));
  CHECK(gradsync::make_text_dataset(write_file(folder, "enough", "abcd"), 3)->size() == 1);
}

TEST_CASE("replayed models get indices and no tokens") {
  const auto dataset = gradsync::make_index_dataset(4);
  CHECK(dataset->size() == 4);
  CHECK(dataset->collate(Tokens{2}, gradsync::meta_device()).tensors.empty());
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

TEST_CASE("a data set of tensors deals out rows under the tensors' names") {
  const auto dataset = gradsync::make_tensor_dataset(
      {{"features", Tensor::from<float>({0, 1, 10, 11, 20, 21}, {3, 2})},
       {"weights", Tensor::from<double>({0.5, 1.5, 2.5}, {3})}});
  CHECK(dataset->size() == 3);
  DataLoader loader(*dataset, DistributedSampler(3, 1, 0, {.shuffle = false}), 2, cpu_device());
  loader.start_epoch(0);
  loader.next();
  const Batch last = loader.next().value();
  CHECK(last.sample_indices == Tokens{2});
  CHECK(last.tensors.at("features").shape() == Shape{1, 2});
  CHECK(last.tensors.at("features").span<float>()[1] == 21.0f);
  CHECK(last.tensors.at("weights").span<double>()[0] == 2.5);

  const Batch mixed = dataset->collate(Tokens{1, 1, 0}, cpu_device());
  CHECK(floats(mixed.tensors.at("features")) == std::vector<float>{10, 11, 10, 11, 0, 1});
  const Batch meta = dataset->collate(Tokens{1, 1, 0}, gradsync::meta_device());
  CHECK(meta.tensors.at("features").shape() == Shape{3, 2});
}

TEST_CASE("tensors that are no data set are refused with their names") {
  const Tensor rows = Tensor::from<float>({1, 2}, {2});
  const auto make = [](gradsync::NamedTensors samples) {
    gradsync::make_tensor_dataset(std::move(samples));
  };
  CHECK_THROWS_WITH(make({}), contains("at least one tensor"));
  CHECK_THROWS_WITH(make({{"x", Tensor::from<float>({1}, {})}}), contains("\"x\" is a scalar"));
  CHECK_THROWS_WITH(make({{"x", rows}, {"y", Tensor::from<float>({1, 2, 3}, {3, 1})}}),
                    contains("\"x\" is [2] and \"y\" [3, 1]"));
  CHECK_THROWS_WITH(
      make({{"x", Tensor::empty({2}, gradsync::DType::kFloat32, gradsync::meta_device())}}),
      contains("\"x\" is not on the CPU"));
  CHECK_THROWS_WITH(make({{"x", rows}, {"x", rows}}), contains("two tensors"));
}

TEST_CASE("a batch without the tensor that a model reads says which it has") {
  Batch batch;
  batch.tensors = {{"features", Tensor()}, {"labels", Tensor()}};
  CHECK_THROWS_WITH(batch.tensors.at("tokens"),
                    contains("no tensor \"tokens\", only \"features\", \"labels\""));
  CHECK_THROWS_WITH(Batch{}.tensors.at("tokens"), contains("nor any other"));
  batch.tensors.set("labels", Tensor::from<float>({3}, {}));
  CHECK(batch.tensors.size() == 2);
  CHECK(batch.tensors.at("labels").defined());
}
