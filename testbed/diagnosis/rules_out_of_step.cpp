#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/habits.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

bool same_place(const CollectiveLabel& a, const CollectiveLabel& b) {
  return a.step == b.step && a.epoch == b.epoch && a.micro_step == b.micro_step &&
         a.bucket == b.bucket && a.what == b.what;
}

bool same_payload(const CollectiveRecord& a, const CollectiveRecord& b) {
  return a.op == b.op && a.elements == b.elements && a.dtype == b.dtype && a.root == b.root &&
         a.reduce_op == b.reduce_op;
}

const RankReport* report_of(const Digest& digest, int rank) {
  return digest.ranks[static_cast<std::size_t>(rank)].report;
}

const StepRecord* step_of(const RankReport* report, std::int64_t step) {
  if (report == nullptr) return nullptr;
  for (const StepRecord& record : report->steps) {
    if (record.step == step) return &record;
  }
  return nullptr;
}

/// The number of mismatched collectives.
std::int64_t mispaired(const Digest& digest, const Mismatch& mismatch) {
  const int odd = mismatch.groups[1].ranks.front();
  std::int64_t count = 0;
  for (const CollectiveRecord* record : digest.ranks[static_cast<std::size_t>(odd)].collectives) {
    if (record->group == mismatch.record->group && record->sequence >= mismatch.record->sequence &&
        record->state == CollectiveState::kCompleted) {
      ++count;
    }
  }
  return count;
}

/// How likely a collective is to be specific to some ranks: DDP's are in every program, user
/// collectives may be issued by only some ranks, and those of a forward outside of training even
/// more so.
int own(const CollectiveRecord& record) {
  if (record.label.what == "buffers" && record.label.phase == Phase::kEvaluation) return 2;
  return is_of_ddp(record) ? 0 : 1;
}

/// Of two equally large groups, the one that does what the ranks did in earlier steps; nullopt if
/// both do, or neither.
std::optional<int> usual_side(const Digest& digest, const Mismatch& mismatch) {
  if (!mismatch.tie()) return std::nullopt;
  const Habit first = habit_of(digest, mismatch.groups[0].ranks.front(), *mismatch.record);
  const Habit second = habit_of(digest, mismatch.groups[1].ranks.front(), *mismatch.odd);
  // A collective that is in no earlier step proves less: it may be what all ranks would have done
  // next.
  const auto is_odd = [&](const CollectiveRecord& odd, const CollectiveRecord& usual) {
    return was_issued_before(digest, odd) || own(odd) > own(usual);
  };
  const CollectiveRecord& a = *mismatch.record;
  const CollectiveRecord& b = *mismatch.odd;
  if (first == Habit::kUsual && second == Habit::kUnusual && is_odd(b, a)) return 0;
  if (first == Habit::kUnusual && second == Habit::kUsual && is_odd(a, b)) return 1;
  return std::nullopt;
}

/// How unusual a collective is: specific to its rank, and in no earlier step.
int oddness(const Digest& digest, const CollectiveRecord& record) {
  return 2 * own(record) + (own(record) == 1 && !was_issued_before(digest, record) ? 1 : 0);
}

/// What distinguishes the odd ranks.
class OutOfStep {
 public:
  OutOfStep(const Digest& digest, const Mismatch& mismatch)
      : digest_(digest),
        mismatch_(mismatch),
        by_habit_(usual_side(digest, mismatch)),
        swapped_(by_habit_ ? *by_habit_ == 1
                           : mismatch.tie() && oddness(digest, *mismatch.record) >
                                                   oddness(digest, *mismatch.odd)),
        usual_(swapped_ ? *mismatch.odd : *mismatch.record),
        odd_(swapped_ ? *mismatch.record : *mismatch.odd),
        ranks_(mismatch.odd_ranks()) {
    // Of two equally large sides, one has issued one collective more than the other so far,
    // whichever is right.
    if (by_habit_ || (mismatch.tie() && oddness(digest, usual_) != oddness(digest, odd_))) {
      ranks_ = mismatch.groups[swapped_ ? 0 : 1].ranks;
    }
    if (mismatch.undecided() && !by_habit_) ranks_.clear();
  }

  Diagnosis describe() {
    diagnosis_.ranks = ranks_;
    diagnosis_.collective = describe_collective(odd_);
    if (odd_.label.bucket >= 0) diagnosis_.bucket = odd_.label.bucket;
    const std::int64_t step = std::min(usual_.label.step, odd_.label.step);
    if (step >= 0) diagnosis_.step = step;
    if (own(usual_) != own(odd_)) {
      another_collective();
    } else if (same_place(usual_.label, odd_.label)) {
      payload();
    } else if (usual_.label.what == odd_.label.what && is_of_ddp(usual_)) {
      another_step();
    } else {
      another_collective();
    }
    symptom();
    return std::move(diagnosis_);
  }

 private:
  /// Without a majority, neither side can be named.
  std::string who() const { return ranks_.empty() ? "one side" : rank_list(ranks_); }

  void payload() {
    const bool same = same_payload(usual_, odd_);
    set_kind(diagnosis_, DiagnosisKind::kPayloadDiffers);
    diagnosis_.because = fmt::format("collective #{} has another payload on {}: {}", odd_.sequence,
                                     who(), mismatch_.describe("issued", "issued"));
    diagnosis_.first_cause = diagnosis_.because;
    if (same) diagnosis_.fix = "give both collectives one purpose";
  }

  void another_step() {
    const int rank = odd_.label.step >= usual_.label.step ? mismatch_.groups[1].ranks.front()
                                                          : mismatch_.groups[0].ranks.front();
    const RankReport* ahead_report = report_of(digest_, rank);
    if (odd_.label.step < usual_.label.step) ranks_ = mismatch_.groups[0].ranks;
    if (mismatch_.tie()) {
      // A rank that is ahead has left something out; this needs no majority.
      diagnosis_.ranks = ranks_ = odd_.label.step >= usual_.label.step ? mismatch_.groups[1].ranks
                                                                       : mismatch_.groups[0].ranks;
    }
    const std::int64_t step = std::min(usual_.label.step, odd_.label.step);
    const StepRecord* taken = step_of(ahead_report, step);
    if (mismatch_.undecided()) ranks_.clear();
    if (digest_.is_forgotten(usual_)) {
      ahead(step, "it came to be so in steps whose collectives are missing in the records");
    } else if (usual_.label.step == odd_.label.step) {
      no_sync(fmt::format("in step {} {} reduced gradients after another batch than the others",
                          step, who()));
    } else if (taken != nullptr && taken->reductions == 0) {
      no_sync(
          fmt::format("{} kept the gradients of step {} local (no_sync), the others reduced "
                      "theirs",
                      who(), step));
    } else if (taken == nullptr && digest_.gaps.steps) {
      ahead(step,
            "whether it left that step out or kept its gradients local is in steps.jsonl, "
            "which is missing");
    } else {
      skipped(step);
    }
    diagnosis_.ranks = ranks_;
  }

  void no_sync(const std::string& because) {
    set_kind(diagnosis_, DiagnosisKind::kNoSyncDiffers);
    diagnosis_.because = because;
    diagnosis_.first_cause = because;
  }

  /// The rank's log does not mention it.
  void skipped(std::int64_t step) {
    set_kind(diagnosis_, DiagnosisKind::kSkippedStep);
    diagnosis_.ranks = ranks_;
    diagnosis_.step = step;
    diagnosis_.because = fmt::format(
        "{} went on to the next batch without the collectives of step {}: from there on {} step "
        "s+1 met the others' step s",
        who(), step, ranks_.size() > 1 ? "their" : "its");
    diagnosis_.first_cause = fmt::format("{} left out step {}", who(), step);
  }

  /// The records do not say what put it ahead, or since when.
  void ahead(std::int64_t step, const std::string& what_is_missing) {
    set_kind(diagnosis_, DiagnosisKind::kOutOfStep);
    diagnosis_.confidence = "open";
    diagnosis_.step.reset();
    diagnosis_.because =
        fmt::format("{} {} a step ahead of the others when these are in step {}; {}", who(),
                    ranks_.size() > 1 ? "are" : "is", step, what_is_missing);
    diagnosis_.first_cause = "before that: the records do not show it";
  }

  void another_collective() {
    // The majority's collective is the usual one; the odd ranks have an additional one, or leave it
    // out.
    const bool both_own = own(odd_) == 1 && own(usual_) == 1;
    const bool odd_is_new = both_own && !was_issued_before(digest_, odd_);
    const bool usual_is_new = both_own && !was_issued_before(digest_, usual_);
    if (both_own && odd_is_new == usual_is_new) {
      set_kind(diagnosis_, DiagnosisKind::kDifferentCollectives);
      diagnosis_.because = fmt::format(
          "collective #{} is not the same call on all ranks: {} issued {}{}, {} issued {}{}",
          odd_.sequence, rank_list(mismatch_.groups[0].ranks), describe_collective(usual_),
          own_site_of(usual_), rank_list(mismatch_.groups[1].ranks), describe_collective(odd_),
          own_site_of(odd_));
    } else if (own(odd_) > own(usual_) || odd_is_new) {
      set_kind(diagnosis_, DiagnosisKind::kExtraCollective);
      diagnosis_.because =
          fmt::format("{} {} one collective more than the others: {}{}, while they are in {}",
                      who(), ranks_.size() > 1 ? "issue" : "issues", describe_collective(odd_),
                      own_site_of(odd_), describe_collective(usual_));
      if (odd_.label.what == "buffers") {
        diagnosis_.fix =
            "a forward through DDP broadcasts buffers: evaluate with the model inside it, or on "
            "all "
            "ranks";
      }
    } else {
      set_kind(diagnosis_, DiagnosisKind::kMissingCollective);
      diagnosis_.because =
          fmt::format("{} {} out a collective that the others issue: they are in {}{}, {} in {}",
                      who(), ranks_.size() > 1 ? "leave" : "leaves", describe_collective(usual_),
                      own_site_of(usual_), who(), describe_collective(odd_));
    }
    diagnosis_.first_cause = diagnosis_.because;
  }

  void symptom() {
    add_symptom(diagnosis_, digest_, &mismatch_);
    if (by_habit_) {
      diagnosis_.confidence = "likely";
      diagnosis_.notes.push_back(
          "the two sides are equally large: what the same ranks did in earlier steps says which is "
          "right");
    } else if (mismatch_.tie() || mismatch_.undecided()) {
      note_majority(diagnosis_, mismatch_);
    } else if (mismatch_.groups[0].ranks.size() * 2 <= digest_.ranks.size() &&
               diagnosis_.confidence == "certain") {
      diagnosis_.confidence = "likely";
      diagnosis_.notes.push_back("ranks that have not come to it could turn the majority");
    }
  }

  const Digest& digest_;
  const Mismatch& mismatch_;
  const std::optional<int> by_habit_;  ///< in a tie, the group that does what earlier steps did
  const bool swapped_;                 ///< the first group is the odd one
  const CollectiveRecord& usual_;
  const CollectiveRecord& odd_;
  std::vector<int> ranks_;
  Diagnosis diagnosis_;
};

}  // namespace

void add_symptom(Diagnosis& diagnosis, const Digest& digest, const Mismatch* mismatch) {
  const auto frontier = find_frontier(digest);
  if (mismatch != nullptr) {
    diagnosis.first_symptom = fmt::format("collective #{} of {} is not the same on all ranks: {}",
                                          mismatch->record->sequence, mismatch->record->group,
                                          mismatch->describe("issued", "issued"));
    if (const std::int64_t harmed = mispaired(digest, *mismatch); harmed > 0) {
      diagnosis.consequences.push_back(
          fmt::format("{} from #{} on met collectives that were not their like, without an error",
                      count_of(harmed, "collective"), mismatch->record->sequence));
    }
  }
  if (digest.all_finished()) {
    diagnosis.verdict = "silent divergence";
  } else if (digest.first_failure == FirstFailure::kError) {
    diagnosis.verdict = "desync";
  } else {
    diagnosis.verdict = "deadlock";
    if (frontier) diagnosis.first_symptom = describe(*frontier);
  }
}

std::optional<Diagnosis> find_out_of_step(const Digest& digest) {
  if (digest.first_failure == FirstFailure::kDeath) return std::nullopt;
  const auto mismatch = first_mismatch(digest);
  if (!mismatch) return std::nullopt;
  return OutOfStep(digest, *mismatch).describe();
}

}  // namespace gradsync::diagnosis
