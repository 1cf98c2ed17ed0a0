#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"
#include "gradsync/testbed/diagnosis/shards.hpp"
#include "gradsync/testbed/diagnosis/turns.hpp"

namespace gradsync::diagnosis {
namespace {

/// Ranks missing from a frontier's collective because their shard ended before its step: they have
/// finished, continued with what follows the loop, or left no report and cannot have had a batch
/// for it.
std::vector<int> ranks_that_ran_out(const Digest& digest, const std::vector<Shard>& shards,
                                    const Frontier& frontier) {
  const CollectiveLabel& label = frontier.record->label;
  const Shard& waiting = shards[static_cast<std::size_t>(frontier.waiting.front())];
  const std::int64_t in_epoch =
      label.step - std::max<std::int64_t>(label.epoch, 0) * waiting.steps_per_epoch;
  std::vector<int> ranks;
  for (const int rank : frontier.missing) {
    const RankView& view = digest.of(rank);
    const Shard& shard = shards[static_cast<std::size_t>(rank)];
    const bool out_of_epoch =
        shard.steps_per_epoch < waiting.steps_per_epoch && shard.steps_per_epoch <= in_epoch;
    if (!shard.known || (shard.steps > label.step && !out_of_epoch)) continue;
    if (view.standing == Standing::kFinished || view.standing == Standing::kUnknown) {
      ranks.push_back(rank);
      continue;
    }
    if (view.report == nullptr || view.report->steps_completed > label.step) continue;
    // Past its loop, and still at or waiting in something of its own after it.
    const bool is_done = view.standing == Standing::kRunning &&
                         view.report->phase == Phase::kUser &&
                         view.report->steps_completed >= shard.steps;
    const bool waits_elsewhere = view.standing == Standing::kBlocked && view.pending != nullptr &&
                                 view.pending->label.step < label.step;
    if (is_done || waits_elsewhere) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> ranks_without(const std::vector<int>& ranks, std::size_t world) {
  std::vector<int> others;
  for (int rank = 0; rank < static_cast<int>(world); ++rank) {
    if (!std::binary_search(ranks.begin(), ranks.end(), rank)) others.push_back(rank);
  }
  return others;
}

/// "desync" if a backend that compares labels stopped the run, otherwise it hangs.
const char* verdict_of(const Digest& digest) {
  return digest.first_failure == FirstFailure::kError ? "desync" : "deadlock";
}

void explain(Diagnosis& diagnosis, const Digest& digest, const std::vector<Shard>& shards) {
  // Streams are sharded as they come; a sampler's shards can be reshuffled.
  const SamplerSpec& sampler = digest.scenario->sampler;
  if (!sampler.shard_sizes.empty() && !sampler.shuffle) diagnosis.catalog = "K02";
  diagnosis.because = fmt::format("{} ran out of data before the others: {}",
                                  rank_list(diagnosis.ranks), describe_shards(digest, shards));
  diagnosis.fix = fix_for_shards(digest, shards);
}

/// The run hangs: some ranks are done, and the others wait for them in a later step.
std::optional<Diagnosis> find_hang(const Digest& digest, const std::vector<Shard>& shards,
                                   std::int64_t fewest_an_epoch) {
  std::vector<int> ran_out;
  std::optional<Frontier> frontier;
  for (const Frontier& candidate : find_frontiers(digest)) {
    if (candidate.record->label.step < 0) continue;
    ran_out = ranks_that_ran_out(digest, shards, candidate);
    frontier = candidate;
    if (!ran_out.empty()) break;
  }
  if (ran_out.empty()) return std::nullopt;
  const CollectiveRecord& record = *frontier->record;

  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kUnevenShards, "deadlock");
  diagnosis.ranks = ran_out;
  if (record.label.bucket >= 0) diagnosis.bucket = record.label.bucket;
  diagnosis.collective = describe_collective(record);
  explain(diagnosis, digest, shards);
  if (digest.scenario->train.epochs > 1 && record.label.step > fewest_an_epoch) {
    // The ranks did not stop when they ran out of data, but continued with the next epoch.
    diagnosis.step = fewest_an_epoch;
    diagnosis.first_cause = fmt::format(
        "from step {} on ranks were in different epochs, and collectives of different epochs met",
        fewest_an_epoch);
    if (const auto mismatch = first_mismatch(digest)) {
      diagnosis.consequences.push_back(
          fmt::format("#{} was the first that did not meet its like: {}",
                      mismatch->record->sequence, mismatch->describe("issued", "issued")));
    }
  } else {
    diagnosis.step = record.label.step;
    diagnosis.first_cause = fmt::format("{} had no batch for step {} (epoch {})",
                                        rank_list(ran_out), record.label.step, record.label.epoch);
  }
  diagnosis.first_symptom = fmt::format("{}; {} never {} it", describe(*frontier),
                                        rank_list(ran_out), verb(ran_out, "enters", "enter"));
  return diagnosis;
}

/// A rank without batches continued with what follows the epoch, and met the others' next step
/// there.
std::optional<Diagnosis> find_early_epoch_end(const Digest& digest,
                                              const std::vector<Shard>& shards,
                                              const Mismatch& mismatch) {
  const std::int64_t step = std::max(mismatch.record->label.step, mismatch.odd->label.step);
  const std::int64_t epoch = mismatch.record->label.epoch;
  if (step < 0 || epoch < 0) return std::nullopt;
  std::vector<int> early;
  const CollectiveRecord* went_to = nullptr;
  for (const RankView& view : digest.ranks) {
    const Shard& shard = shards[static_cast<std::size_t>(view.rank)];
    for (const CollectiveRecord* record : view.collectives) {
      const bool here =
          record->sequence == mismatch.record->sequence && record->group == mismatch.record->group;
      if (!here || record->label.step >= step || !shard.known) continue;
      if (shard.steps_per_epoch * (epoch + 1) > step) continue;
      early.push_back(view.rank);
      went_to = record;
    }
  }
  if (early.empty()) return std::nullopt;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kUnevenShards, verdict_of(digest));
  diagnosis.ranks = early;
  diagnosis.step = step;
  diagnosis.collective = describe_collective(*went_to);
  explain(diagnosis, digest, shards);
  diagnosis.first_cause =
      fmt::format("{} had no batch left for step {} and went on to {}{}", rank_list(early), step,
                  describe_collective(*went_to), own_site_of(*went_to));
  diagnosis.first_symptom =
      fmt::format("collective #{} is not the same on all ranks: {}", mismatch.record->sequence,
                  mismatch.describe("issued", "issued"));
  return diagnosis;
}

/// A backend that compares labels stopped the run when a rank arrived with a step of another epoch.
std::optional<Diagnosis> find_epoch_mismatch(const Digest& digest,
                                             const std::vector<Shard>& shards) {
  const auto mismatch = first_mismatch(digest);
  if (!mismatch) return std::nullopt;
  if (mismatch->record->label.epoch == mismatch->odd->label.epoch) {
    return find_early_epoch_end(digest, shards, *mismatch);
  }
  const std::int64_t epoch = std::min(mismatch->record->label.epoch, mismatch->odd->label.epoch);
  // Including ranks that were stopped before they reached it.
  const std::int64_t step = std::min(mismatch->record->label.step, mismatch->odd->label.step);
  std::vector<int> ahead;
  for (const RankView& view : digest.ranks) {
    const Shard& shard = shards[static_cast<std::size_t>(view.rank)];
    if (shard.known && shard.steps_per_epoch * (epoch + 1) <= step) ahead.push_back(view.rank);
  }
  if (ahead.empty()) return std::nullopt;
  const auto behind = ranks_without(ahead, digest.ranks.size());

  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kUnevenShards, verdict_of(digest));
  diagnosis.ranks = ahead;
  diagnosis.step = step;
  if (mismatch->record->label.bucket >= 0) diagnosis.bucket = mismatch->record->label.bucket;
  diagnosis.collective = describe_collective(*mismatch->record);
  explain(diagnosis, digest, shards);
  diagnosis.first_cause =
      fmt::format("at step {} {} had no batch left in epoch {} and went on to the next, {} had one",
                  *diagnosis.step, rank_list(ahead), epoch, rank_list(behind));
  diagnosis.first_symptom =
      fmt::format("collective #{} is not the same on all ranks: {}", mismatch->record->sequence,
                  mismatch->describe("issued", "issued"));
  return diagnosis;
}

}  // namespace

std::optional<Diagnosis> find_uneven_shards(const Digest& digest) {
  const std::vector<Shard> shards = read_shards(digest);
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = 0;
  for (const Shard& shard : shards) {
    if (!shard.known) continue;
    fewest = std::min(fewest, shard.steps_per_epoch);
    most = std::max(most, shard.steps_per_epoch);
  }
  if (fewest >= most || digest.gaps.scenario) return std::nullopt;
  const auto turn = first_turn(digest);
  if (turn && turn->step < fewest) return std::nullopt;  // went wrong before any rank ran out
  switch (digest.first_failure) {
    case FirstFailure::kNone:
    case FirstFailure::kTimeout:
      if (auto found = find_hang(digest, shards, fewest)) return found;
      return digest.all_finished() ? std::nullopt : find_epoch_mismatch(digest, shards);
    case FirstFailure::kError:
      return find_epoch_mismatch(digest, shards);
    case FirstFailure::kDeath:
      break;
  }
  return std::nullopt;
}

}  // namespace gradsync::diagnosis
