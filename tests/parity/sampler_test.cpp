#include <cstdint>
#include <string>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/data/distributed_sampler.hpp"
#include "gradsync/data/randperm.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded.hpp"
#include "tests/support/sha256.hpp"

using gradsync::DistributedSampler;
using gradsync::Generator;
using gradsync::randperm;
using gradsync::test::load_recorded;
using Indices = std::vector<std::int64_t>;

TEST_CASE("the sampler's indices are PyTorch's in every recorded case") {
  const auto recorded = load_recorded("pytorch/sampler.json");
  REQUIRE(recorded.at("cases").size() == 430);
  for (const auto& c : recorded.at("cases")) {
    DistributedSampler sampler(
        c.at("n"), c.at("world"), c.at("rank"),
        {.shuffle = c.at("shuffle"), .seed = c.at("seed"), .drop_last = c.at("drop_last")});
    sampler.set_epoch(c.at("epoch"));
    CAPTURE(c.dump());
    REQUIRE(sampler.num_samples() == c.at("num_samples").get<std::int64_t>());
    REQUIRE(sampler.total_size() == c.at("total_size").get<std::int64_t>());
    const Indices indices = sampler.indices();
    REQUIRE(static_cast<std::int64_t>(indices.size()) == sampler.num_samples());
    if (c.contains("indices")) {
      REQUIRE(indices == c.at("indices").get<Indices>());
    } else {
      std::string csv;
      for (const auto index : indices) csv += (csv.empty() ? "" : ",") + std::to_string(index);
      REQUIRE(gradsync::test::sha256_hex(csv) == c.at("sha256_csv").get<std::string>());
    }
  }
}

TEST_CASE("the sampler refuses the ranks that PyTorch's refuses") {
  const auto recorded = load_recorded("pytorch/sampler.json");
  REQUIRE(recorded.at("errors").size() == 2);
  for (const auto& c : recorded.at("errors")) {
    CHECK_THROWS_AS(DistributedSampler(10, c.at(0), c.at(1)), gradsync::Error);
  }
}

TEST_CASE("the generator's draws are PyTorch's") {
  const auto recorded = load_recorded("pytorch/sampler.json");
  REQUIRE(recorded.at("mt19937_raw").size() == 7);
  for (const auto& c : recorded.at("mt19937_raw")) {
    Generator generator(c.at("seed").get<std::uint64_t>());
    std::vector<std::uint32_t> draws(1000);
    for (auto& draw : draws) draw = generator.random32();
    CHECK(std::vector<std::uint32_t>(draws.begin(), draws.begin() + 8) ==
          c.at("first8").get<std::vector<std::uint32_t>>());
    CHECK(draws[999] == c.at("draw_1000th").get<std::uint32_t>());
  }
}

TEST_CASE("randperm is PyTorch's, also for negative seeds and two draws in a row") {
  const auto recorded = load_recorded("pytorch/sampler.json");
  REQUIRE(recorded.at("randperm").size() == 12);
  for (const auto& c : recorded.at("randperm")) {
    Generator generator(c.at("seed").get<std::uint64_t>());
    CHECK(randperm(c.at("n"), generator) == c.at("perm").get<Indices>());
  }
  REQUIRE(recorded.at("negative_seeds").size() == 4);
  for (const auto& c : recorded.at("negative_seeds")) {
    const auto seed = static_cast<std::uint64_t>(c.at("seed").get<std::int64_t>());
    CHECK(seed == c.at("initial_seed").get<std::uint64_t>());
    Generator generator(seed);
    CHECK(randperm(10, generator) == c.at("perm10").get<Indices>());
  }
  Generator generator(0);
  for (const auto& permutation : recorded.at("two_consecutive_randperm5_seed0")) {
    CHECK(randperm(5, generator) == permutation.get<Indices>());
  }
}
