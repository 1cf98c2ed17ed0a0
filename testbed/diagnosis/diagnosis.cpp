#include "gradsync/testbed/diagnosis/diagnosis.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/common_block.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sequences.hpp"
#include "gradsync/testbed/diagnosis/table.hpp"

namespace gradsync {
namespace {

using namespace diagnosis;

/// In this order: the first that answers is the verdict.
// clang-format off: a rule a line
constexpr Rule kRules[] = {
    // The job did not start.
    find_start_failed,
    find_duplicate_device,
    find_different_model,
    find_unreachable,
    find_group_creation,
    find_not_joined,
    // A rank took a different turn, or failed.
    find_uneven_shards,
    find_hidden_error,
    find_turn,
    find_out_of_step,
    find_parameters_differ,
    find_misuse,
    find_rank_died,
    find_error,
    // Ranks wait: for what?
    find_out_of_slots,
    find_left_loop,
    find_detour,
    find_cycle,
    find_slow_section,
    find_stopped,
    find_left_behind,
    find_stalled,
    find_late_rank,
    find_network,
    describe_unknown,
    // Nothing stopped, but something is wrong.
    find_buffers_differ,
    find_not_a_number,
    find_wrong_clip,
    find_wrong_samples,
    find_uneven_batches,
    find_different_call_sites,
    // Only slow, or worth a note.
    find_straggler,
    find_padding,
    describe_gaps,
};
// clang-format on

/// Adds the missing evidence other than reports.
void add_gaps(Diagnosis& found, const Digest& digest) {
  std::vector<int> testified;
  for (const RankView& view : digest.ranks) {
    if (view.testified) testified.push_back(view.rank);
  }
  if (!testified.empty()) {
    found.notes.push_back(
        fmt::format("the files of {} are missing: what is said of {} is what the errors of the "
                    "others say",
                    rank_list(testified), testified.size() == 1 ? "it" : "them"));
  }
  for (const std::string& file : digest.gaps.files) found.notes.push_back(file);
  if (!digest.gaps.summaries.empty()) {
    found.notes.push_back(
        fmt::format("of {} only the summary in ranks.jsonl is there: its samples, "
                    "tensors and earlier collectives are missing",
                    rank_list(digest.gaps.summaries)));
  }
  if (digest.rings_wrapped()) {
    found.notes.push_back(
        "the flight recorder's ring was full: the collectives before those that it holds are "
        "missing");
  }
}

/// Adds notes for every verdict: missing evidence, and findings that are not the cause.
void add_common_notes(Diagnosis& found, const Digest& digest, Rule answered) {
  const std::vector<int> unknown = digest.with(Standing::kUnknown);
  if (!unknown.empty()) {
    found.notes.push_back(fmt::format(
        "no report of {}: what is said of them follows from the others and the scenario{}",
        rank_list(unknown), digest.absent().empty() ? "" : "; their files are missing"));
  }
  add_gaps(found, digest);
  std::vector<int> cleaning_up;
  for (const RankView& view : digest.ranks) {
    if (view.report != nullptr && view.report->clean_up_since) cleaning_up.push_back(view.rank);
  }
  if (!cleaning_up.empty()) {
    const bool one = cleaning_up.size() == 1;
    found.consequences.push_back(
        fmt::format("{} failed and did not come back from {} clean-up, which no watchdog inside "
                    "can see: {} had to be ended from outside",
                    rank_list(cleaning_up), one ? "its" : "their", one ? "it" : "they"));
  }
  if (!digest.foreign_ranks.empty()) {
    found.notes.push_back(
        fmt::format("{} of the reports are of ranks that this run of {} does not have; left out",
                    digest.foreign_ranks.size(), digest.ranks.size()));
  }
  if (answered != find_parameters_differ) {
    if (const auto difference = first_hash_difference(digest)) {
      found.notes.push_back(fmt::format("the parameters differ since step {}: {}", difference->step,
                                        difference->describe("has hash", "have hash")));
    }
  }
  if (answered != find_out_of_step && answered != find_turn && found.verdict != "desync") {
    if (const auto mismatch = first_mismatch(digest)) {
      found.notes.push_back(fmt::format("collective #{} did not meet its like: {}",
                                        mismatch->record->sequence,
                                        mismatch->describe("issued", "issued")));
    }
  }
}

}  // namespace

std::optional<Diagnosis> diagnose(const std::vector<RankReport>& reports, const Scenario& scenario,
                                  const EvidenceGaps& gaps) {
  const Digest digest = make_digest(reports, scenario, gaps);
  std::optional<Diagnosis> found;
  const auto answered = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule rule) {
    found = rule(digest);
    return found.has_value();
  });
  if (!found) return std::nullopt;
  add_common_notes(*found, digest, *answered);
  weigh(*found, digest);
  found->ruled_out = ruled_out(*found, digest);
  found->reproduction = reproduction(*found, scenario);
  const Sequences sequences(digest);
  found->divergence = sequences.find_divergence();
  found->table = make_table(digest, sequences);
  return found;
}

}  // namespace gradsync
