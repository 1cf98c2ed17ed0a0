#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/data/distributed_sampler.hpp"
#include "gradsync/data/randperm.hpp"
#include "tests/support/catch.hpp"

using gradsync::DistributedSampler;
using gradsync::Generator;
using gradsync::SamplerOptions;
using gradsync::test::contains;
using Indices = std::vector<std::int64_t>;

namespace {

std::vector<std::int64_t> shares(std::int64_t n, int world, const SamplerOptions& options) {
  std::vector<std::int64_t> result;
  for (int rank = 0; rank < world; ++rank) {
    const DistributedSampler sampler(n, world, rank, options);
    CHECK(static_cast<std::int64_t>(sampler.indices().size()) == sampler.num_samples());
    result.push_back(sampler.num_samples());
  }
  return result;
}

}  // namespace

TEST_CASE("without padding the tail is dealt out unevenly") {
  const SamplerOptions options{.shuffle = false, .pad = false};
  CHECK(shares(10, 4, options) == Indices{3, 3, 2, 2});
  CHECK(shares(2, 4, options) == Indices{1, 1, 0, 0});
  CHECK(DistributedSampler(10, 4, 1, options).indices() == Indices{1, 5, 9});
  CHECK(DistributedSampler(10, 4, 3, options).indices() == Indices{3, 7});
}

TEST_CASE("without padding every sample is seen exactly once") {
  Indices seen;
  for (int rank = 0; rank < 4; ++rank) {
    const Indices mine = DistributedSampler(10, 4, rank, {.seed = 42, .pad = false}).indices();
    seen.insert(seen.end(), mine.begin(), mine.end());
  }
  std::sort(seen.begin(), seen.end());
  Indices all(10);
  std::iota(all.begin(), all.end(), 0);
  CHECK(seen == all);
}

TEST_CASE("explicit shards are contiguous pieces of the shuffled order") {
  const SamplerOptions options{.seed = 7, .shard_sizes = {5, 0, 3}};
  CHECK(shares(10, 3, options) == Indices{5, 0, 3});
  Generator generator(7);
  const Indices order = gradsync::randperm(10, generator);
  CHECK(DistributedSampler(10, 3, 2, options).indices() ==
        Indices(order.begin() + 5, order.begin() + 8));
}

TEST_CASE("the sampler names what is wrong with its arguments, the rank first") {
  const auto make = [](std::int64_t n, int world, int rank, SamplerOptions options = {}) {
    return DistributedSampler(n, world, rank, std::move(options));
  };
  CHECK_THROWS_WITH(make(10, 0, 0), contains("invalid rank 0") && contains("[0, -1]"));
  CHECK_THROWS_WITH(make(-1, 2, 5), contains("invalid rank 5"));
  CHECK_THROWS_WITH(make(-1, 2, 0), contains("-1 samples"));
  CHECK_THROWS_WITH(make(10, 2, 0, {.shard_sizes = {1}}), contains("1 shard sizes for 2 ranks"));
  CHECK_THROWS_WITH(make(10, 2, 0, {.shard_sizes = {9, 2}}),
                    contains("rank 1's shard of 2 samples: expected 0 to 1"));
  CHECK_THROWS_WITH(make(10, 2, 0, {.shard_sizes = {-1, 2}}), contains("rank 0's shard of -1"));
}

TEST_CASE("seed plus epoch must fit 64 bits, as PyTorch's generator demands") {
  DistributedSampler sampler(4, 1, 0, {.seed = std::numeric_limits<std::uint64_t>::max()});
  CHECK(sampler.indices().size() == 4);
  sampler.set_epoch(1);
  CHECK_THROWS_WITH(sampler.indices(), contains("2^64"));
}

TEST_CASE("the order changes with the epoch only when it is set") {
  DistributedSampler sampler(100, 2, 0);
  const Indices first = sampler.indices();
  CHECK(sampler.indices() == first);
  sampler.set_epoch(1);
  CHECK(sampler.indices() != first);
}

TEST_CASE("the 64-bit shuffle of large sets follows its rule draw by draw") {
  constexpr std::int64_t n = 1000;
  Generator generator(3);
  const Indices permutation = gradsync::randperm_64bit(n, generator);

  // The rule as written down: element i goes to a random earlier place, whose element moves to i.
  Generator replay(3);
  Indices expected;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t high = replay.random32();
    const std::uint64_t low = replay.random32();
    const auto place =
        static_cast<std::size_t>(((high << 32) + low) % static_cast<std::uint64_t>(i + 1));
    expected.push_back(i);
    std::swap(expected[place], expected.back());
  }
  CHECK(permutation == expected);
  CHECK(generator.random32() == replay.random32());
}

TEST_CASE("randperm refuses a negative size") {
  Generator generator(0);
  CHECK_THROWS_WITH(gradsync::randperm(-1, generator), contains("-1"));
}
