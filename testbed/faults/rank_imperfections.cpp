#include "gradsync/testbed/faults/rank_imperfections.hpp"

#include <algorithm>

#include "gradsync/core/random.hpp"

namespace gradsync {
namespace {

/// Each use of the seed has its own streams, so that adding an imperfection does not change the
/// draws of the others.
enum class Draw : std::uint64_t { kSpread = 1, kJitter = 2, kStall = 3 };

CounterRandom stream(const ImperfectionSpec& spec, Draw use, int rank, std::size_t item = 0) {
  const std::uint64_t of_use =
      splitmix64((static_cast<std::uint64_t>(use) << 32) + static_cast<std::uint64_t>(item));
  return {splitmix64(spec.seed) ^ of_use, static_cast<std::uint64_t>(rank)};
}

/// A random factor: lognormal, exp(sigma z - sigma^2 / 2), with mean 1, or normal, max(0, 1 + sigma
/// z).
double factor(const ImperfectionSpec& spec, double sigma, const CounterRandom& random,
              std::uint64_t index) {
  if (sigma == 0) return 1;
  const double z = random.normal(index);
  if (spec.distribution == ImperfectionSpec::Distribution::kNormal) {
    return std::max(0.0, 1 + sigma * z);
  }
  return portable_exp(sigma * z - sigma * sigma / 2);
}

bool concerns(const std::vector<std::int64_t>& ranks, int rank) {
  return ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

RankImperfections::RankImperfections(const ImperfectionSpec& spec, int rank)
    : spec_(&spec),
      rank_(rank),
      own_factor_(factor(spec, spec.compute_spread, stream(spec, Draw::kSpread, rank), 0)) {
  for (const ImperfectionSpec::SlowRanks& slow : spec.slow_ranks) {
    if (concerns(slow.ranks, rank)) own_factor_ *= slow.factor;
  }
}

double RankImperfections::compute_factor(std::int64_t step) const {
  return own_factor_ * factor(*spec_, spec_->compute_jitter, stream(*spec_, Draw::kJitter, rank_),
                              static_cast<std::uint64_t>(step));
}

Seconds RankImperfections::loader_stall(std::int64_t step) const {
  Seconds sum{0};
  for (std::size_t i = 0; i < spec_->loader_stalls.size(); ++i) {
    const ImperfectionSpec::LoaderStall& stall = spec_->loader_stalls[i];
    if (!concerns(stall.ranks, rank_) || (step + 1) % stall.every != 0) continue;
    const CounterRandom random = stream(*spec_, Draw::kStall, rank_, i);
    if (random.uniform(static_cast<std::uint64_t>(step)) < stall.probability) {
      sum += stall.duration;
    }
  }
  return sum;
}

Seconds start_delay(const ImperfectionSpec& spec, int rank) {
  Seconds sum{0};
  for (const ImperfectionSpec::LateRanks& late : spec.late_ranks) {
    if (concerns(late.ranks, rank)) sum += late.duration;
  }
  return sum;
}

bool ranks_differ(const ImperfectionSpec& spec) {
  const auto some = [](const auto& items) {
    return std::any_of(items.begin(), items.end(),
                       [](const auto& item) { return !item.ranks.empty(); });
  };
  const bool stalls_differ = std::any_of(spec.loader_stalls.begin(), spec.loader_stalls.end(),
                                         [](const auto& stall) { return stall.probability < 1; });
  return spec.compute_spread > 0 || spec.compute_jitter > 0 || stalls_differ ||
         some(spec.slow_ranks) || some(spec.late_ranks) || some(spec.loader_stalls);
}

}  // namespace gradsync
