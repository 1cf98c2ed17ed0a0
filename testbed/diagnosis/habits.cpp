#include "gradsync/testbed/diagnosis/habits.hpp"

#include <algorithm>
#include <iterator>

namespace gradsync::diagnosis {
namespace {

/// Whether both come from the same place of the program, whatever the step.
bool same_place(const CollectiveRecord& a, const CollectiveRecord& b) {
  return a.group == b.group && a.op == b.op && a.label.what == b.label.what &&
         a.label.bucket == b.label.bucket && a.label.micro_step == b.label.micro_step &&
         a.label.site == b.label.site;
}

}  // namespace

Habit habit_of(const Digest& digest, int rank, const CollectiveRecord& record) {
  const auto& own = digest.of(rank).collectives;
  const auto here = std::ranges::find_if(own, [&](const CollectiveRecord* r) {
    return r->group == record.group && r->sequence == record.sequence;
  });
  if (here == own.end() || here == own.begin()) return Habit::kUnknown;
  const CollectiveRecord& before = **std::prev(here);
  Habit habit = Habit::kUnknown;
  for (const RankView& view : digest.ranks) {
    const auto& all = view.collectives;
    for (std::size_t i = 1; i < all.size(); ++i) {
      const bool earlier = all[i]->label.step < record.label.step && all[i - 1] != &before;
      if (!earlier || !same_place(*all[i - 1], before)) continue;
      if (same_place(*all[i], record)) return Habit::kUsual;
      habit = Habit::kUnusual;
    }
  }
  return habit;
}

bool was_issued_before(const Digest& digest, const CollectiveRecord& record) {
  return std::ranges::any_of(digest.ranks, [&](const RankView& view) {
    return std::ranges::any_of(view.collectives, [&](const CollectiveRecord* other) {
      return other->label.step < record.label.step && same_place(*other, record);
    });
  });
}

}  // namespace gradsync::diagnosis
