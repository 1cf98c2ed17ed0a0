#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// What one rank has to train on.
struct Shard {
  int rank = 0;
  std::int64_t samples = 0;  ///< an epoch
  std::int64_t steps_per_epoch = 0;
  std::int64_t steps = 0;  ///< of the run
  bool known = false;      ///< false: neither a report nor the scenario says
};

/// The shards of all ranks, by rank: as the rank itself reported, else as the scenario's sampler
/// deals them.
std::vector<Shard> read_shards(const Digest& digest);

/// "10 samples over 4 ranks without padding, batch size 1: ranks 0-1 have 3 samples, which make 3
/// steps; ranks 2-3 have 2 samples, which make 2 steps"
std::string describe_shards(const Digest& digest, const std::vector<Shard>& shards);

/// What to change so that all ranks take equally many steps, and what that does to the samples.
std::string fix_for_shards(const Digest& digest, const std::vector<Shard>& shards);

}  // namespace gradsync::diagnosis
