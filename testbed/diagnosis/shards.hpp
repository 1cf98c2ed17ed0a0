#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// The training data of one rank.
struct Shard {
  int rank = 0;
  std::int64_t samples = 0;  ///< per epoch
  std::int64_t steps_per_epoch = 0;
  std::int64_t steps = 0;  ///< of the run
  bool known = false;      ///< false: given neither by a report nor by the scenario
};

/// The shards of all ranks, by rank: as reported by the rank, otherwise as the scenario's sampler
/// would assign them.
std::vector<Shard> read_shards(const Digest& digest);

/// "10 samples over 4 ranks without padding, batch size 1: ranks 0-1 have 3 samples, which make 3
/// steps; ranks 2-3 have 2 samples, which make 2 steps"
std::string describe_shards(const Digest& digest, const std::vector<Shard>& shards);

/// How to give all ranks the same number of steps, and what that does to the samples.
std::string fix_for_shards(const Digest& digest, const std::vector<Shard>& shards);

}  // namespace gradsync::diagnosis
