#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

/// A collective in flight: on which ranks it runs, and where it was issued but has not started.
struct Open {
  const CollectiveRecord* record = nullptr;
  std::vector<int> runs;
  std::vector<int> waits;
};

std::vector<Open> open_collectives(const Digest& digest) {
  std::map<std::pair<std::string, std::int64_t>, Open> open;
  for (const RankView& view : digest.ranks) {
    for (const CollectiveRecord* record : view.collectives) {
      if (record->state == CollectiveState::kCompleted) continue;
      Open& of = open[{record->group, record->sequence}];
      if (of.record == nullptr) of.record = record;
      (record->started < Seconds{0} ? of.waits : of.runs).push_back(view.rank);
    }
  }
  std::vector<Open> list;
  for (auto& [key, of] : open) {
    if (!of.runs.empty() && !of.waits.empty()) list.push_back(std::move(of));
  }
  return list;
}

std::vector<int> in_both(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

/// Whether the rank issued `a` before `b`.
bool issued_first(const RankView& view, const CollectiveRecord& a, const CollectiveRecord& b) {
  const auto place = [&](const CollectiveRecord& wanted) {
    return std::ranges::find_if(view.collectives, [&](const CollectiveRecord* record) {
      return record->group == wanted.group && record->sequence == wanted.sequence;
    });
  };
  return place(a) < place(b);
}

/// Ranks that issue them in different orders wait in a cycle on any device, which find_cycle
/// detects.
bool in_one_order(const Digest& digest, const std::vector<int>& ranks, const Open& a,
                  const Open& b) {
  const auto first = [&](int rank) {
    return issued_first(digest.ranks[static_cast<std::size_t>(rank)], *a.record, *b.record);
  };
  return std::ranges::all_of(ranks, first) || std::ranges::none_of(ranks, first);
}

std::string name(const CollectiveRecord& record) {
  return fmt::format("{} of {}", describe_collective(record), record.group);
}

}  // namespace

/// Two collectives of different groups, each running on ranks where the other has not started. All
/// ranks issued both; a device with room for both, or one that starts them in a fixed order, would
/// complete them.
std::optional<Diagnosis> find_out_of_slots(const Digest& digest) {
  if (digest.all_finished()) return std::nullopt;
  const std::vector<Open> open = open_collectives(digest);
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (std::size_t j = i + 1; j < open.size(); ++j) {
      const Open& a = open[i];
      const Open& b = open[j];
      const std::vector<int> run_a = in_both(a.runs, b.waits);
      const std::vector<int> run_b = in_both(b.runs, a.waits);
      if (run_a.empty() || run_b.empty() || a.record->group == b.record->group) continue;
      std::vector<int> ranks;
      std::ranges::merge(run_a, run_b, std::back_inserter(ranks));
      if (!in_one_order(digest, ranks, a, b)) continue;
      Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kDeviceSlots, "deadlock");
      diagnosis.ranks = std::move(ranks);
      diagnosis.collective = describe_collective(*a.record);
      if (a.record->label.step >= 0) diagnosis.step = a.record->label.step;
      const auto holds = [](const std::vector<int>& where, const Open& one, const Open& other) {
        return fmt::format("on {} {} runs, and {} has not started", rank_list(where),
                           name(*one.record), name(*other.record));
      };
      diagnosis.chain = {holds(run_a, a, b), holds(run_b, b, a)};
      diagnosis.because =
          "every rank has issued both collectives, in one order, but devices without room for both "
          "have started "
          "another one first: each kernel holds its place while it waits for ranks whose devices "
          "have none for it";
      diagnosis.first_cause = "collectives of several communicators are under way at a time";
      diagnosis.first_symptom = diagnosis.chain.front();
      return diagnosis;
    }
  }
  return std::nullopt;
}

}  // namespace gradsync::diagnosis
