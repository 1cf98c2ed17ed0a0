#include "engine/diagnosis/diagnosis.hpp"

#include <fmt/format.h>

#include "engine/core/rank_list.hpp"
#include "engine/diagnosis/evidence.hpp"
#include "engine/diagnosis/rules.hpp"
#include "engine/diagnosis/table.hpp"

namespace gradsync {
namespace {

using namespace diagnosis;

constexpr Rule kRules[] = {
    find_parameters_differ, find_uneven_shards, find_mismatch,    find_rank_died, find_error,
    find_not_joined,        find_late_rank,     describe_unknown,
};

/// What bears on every verdict: evidence that is missing, and findings that are not the cause.
void add_common_notes(Diagnosis& found, const Digest& digest) {
  const std::vector<int> unknown = digest.with(Standing::kUnknown);
  if (!unknown.empty()) {
    found.notes.push_back(fmt::format(
        "no report of {}: what is said of them follows from the others and the scenario",
        rank_list(unknown)));
  }
  if (!digest.foreign_ranks.empty()) {
    found.notes.push_back(
        fmt::format("{} of the reports are of ranks that this run of {} does not have; left out",
                    digest.foreign_ranks.size(), digest.ranks.size()));
  }
  if (found.kind != "parameters_differ") {
    if (const auto difference = first_hash_difference(digest)) {
      found.notes.push_back(fmt::format("the parameters differ since step {}: {}", difference->step,
                                        difference->describe("has hash", "have hash")));
    }
  }
  if (found.verdict != "desync") {
    if (const auto mismatch = first_mismatch(digest)) {
      found.notes.push_back(fmt::format("collective #{} did not meet its like: {}",
                                        mismatch->record->sequence,
                                        mismatch->describe("issued", "issued")));
    }
  }
}

}  // namespace

std::optional<Diagnosis> diagnose(const std::vector<RankReport>& reports,
                                  const Scenario& scenario) {
  const Digest digest = make_digest(reports, scenario);
  if (digest.all_finished() && !first_hash_difference(digest)) return std::nullopt;
  std::optional<Diagnosis> found;
  for (const Rule rule : kRules) {
    found = rule(digest);
    if (found) break;
  }
  add_common_notes(*found, digest);
  found->table = make_table(digest);
  return found;
}

}  // namespace gradsync
