#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
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

const RankEvent* skip_of(const RankReport* report, std::int64_t step) {
  if (report == nullptr) return nullptr;
  for (const RankEvent& event : report->events) {
    if (event.kind == RankEventKind::kSkipped && event.step == step) return &event;
  }
  return nullptr;
}

const StepRecord* step_of(const RankReport* report, std::int64_t step) {
  if (report == nullptr) return nullptr;
  for (const StepRecord& record : report->steps) {
    if (record.step == step) return &record;
  }
  return nullptr;
}

/// How many collectives have met that were not meant for each other.
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

/// How much a collective is one that a rank has of its own: DDP's belong to every program, what the
/// program issues itself may be only some ranks', and a forward that is no training even more so.
int own(const CollectiveRecord& record) {
  if (record.label.what == "buffers" && record.label.phase == Phase::kEvaluation) return 2;
  return is_of_ddp(record) ? 0 : 1;
}

/// What sets the odd ranks apart.
class OutOfStep {
 public:
  OutOfStep(const Digest& digest, const Mismatch& mismatch)
      : digest_(digest),
        mismatch_(mismatch),
        swapped_(mismatch.tie() && own(*mismatch.record) > own(*mismatch.odd)),
        usual_(swapped_ ? *mismatch.odd : *mismatch.record),
        odd_(swapped_ ? *mismatch.record : *mismatch.odd),
        ranks_(mismatch.odd_ranks()) {
    // Of two sides that are equally large, one has issued a collective more than the other up to
    // here, whichever is right.
    if (mismatch.tie() && own(usual_) != own(odd_))
      ranks_ = mismatch.groups[swapped_ ? 0 : 1].ranks;
  }

  Diagnosis describe() {
    diagnosis_.ranks = ranks_;
    diagnosis_.collective = describe_collective(odd_);
    if (odd_.label.bucket >= 0) diagnosis_.bucket = odd_.label.bucket;
    const std::int64_t step = std::min(usual_.label.step, odd_.label.step);
    if (step >= 0) diagnosis_.step = step;
    if (first_steps_differ()) {
      resumed();
    } else if (own(usual_) != own(odd_)) {
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
  void payload() {
    const bool same = same_payload(usual_, odd_);
    diagnosis_.kind = "payload_differs";
    diagnosis_.catalog = "K23";
    diagnosis_.because = fmt::format("collective #{} has another payload on {}: {}", odd_.sequence,
                                     rank_list(ranks_), mismatch_.describe("issued", "issued"));
    diagnosis_.first_cause = diagnosis_.because;
    diagnosis_.fix = same ? "give both collectives one purpose"
                          : "give the collective the same operation, element count, type, root and "
                            "reduction on every rank";
  }

  void another_step() {
    const int rank = odd_.label.step >= usual_.label.step ? mismatch_.groups[1].ranks.front()
                                                          : mismatch_.groups[0].ranks.front();
    const RankReport* ahead = report_of(digest_, rank);
    if (odd_.label.step < usual_.label.step) ranks_ = mismatch_.groups[0].ranks;
    if (mismatch_.tie()) {
      // Who is ahead has left something out; that needs no majority.
      diagnosis_.ranks = ranks_ = odd_.label.step >= usual_.label.step ? mismatch_.groups[1].ranks
                                                                       : mismatch_.groups[0].ranks;
    }
    const std::int64_t step = std::min(usual_.label.step, odd_.label.step);
    const RankEvent* skip = skip_of(ahead, step);
    const StepRecord* taken = step_of(ahead, step);
    if (usual_.label.step == odd_.label.step) {
      no_sync(fmt::format("in step {} {} reduced gradients after another batch than the others",
                          step, rank_list(ranks_)));
    } else if (taken != nullptr && taken->reductions == 0) {
      no_sync(
          fmt::format("{} kept the gradients of step {} local (no_sync), the others reduced "
                      "theirs",
                      rank_list(ranks_), step));
    } else {
      skipped(step, skip);
    }
  }

  bool first_steps_differ() const {
    const RankReport* a = report_of(digest_, mismatch_.groups[0].ranks.front());
    const RankReport* b = report_of(digest_, mismatch_.groups[1].ranks.front());
    return a != nullptr && b != nullptr && a->first_step != b->first_step;
  }

  /// By what all ranks report, also those that had not come to the collective yet.
  void resumed() {
    std::map<std::int64_t, std::vector<int>> ranks_by_step;
    for (const RankView& view : digest_.ranks) {
      if (view.report != nullptr && !view.collectives.empty()) {
        ranks_by_step[view.report->first_step].push_back(view.rank);
      }
    }
    std::size_t most = 0;
    for (const auto& [step, ranks] : ranks_by_step) most = std::max(most, ranks.size());
    std::string text;
    std::size_t majorities = 0;
    ranks_.clear();
    for (const auto& [step, ranks] : ranks_by_step) {
      text += fmt::format("{}{} at step {}", text.empty() ? "" : ", ", rank_list(ranks), step);
      if (ranks.size() == most) ++majorities;
    }
    for (const auto& [step, ranks] : ranks_by_step) {
      if (majorities > 1 || ranks.size() < most) {
        ranks_.insert(ranks_.end(), ranks.begin(), ranks.end());
      }
    }
    std::sort(ranks_.begin(), ranks_.end());
    diagnosis_.ranks = ranks_;
    diagnosis_.kind = "resume_differs";
    diagnosis_.catalog = "K25";
    diagnosis_.step = ranks_by_step.begin()->first;
    diagnosis_.because = "the ranks did not start at the same step: " + text;
    diagnosis_.first_cause = diagnosis_.because;
    diagnosis_.fix =
        "load the same checkpoint on every rank, or on rank 0 and broadcast what it says: step, "
        "epoch, optimizer state";
  }

  void no_sync(const std::string& because) {
    diagnosis_.kind = "no_sync_differs";
    diagnosis_.catalog = "K11";
    diagnosis_.because = because;
    diagnosis_.first_cause = because;
    diagnosis_.fix =
        "the last batch of a step must be reduced on every rank: decide about no_sync by the "
        "batch's "
        "number alone, and put its forward inside the same context";
  }

  void skipped(std::int64_t step, const RankEvent* skip) {
    const bool swallowed = skip != nullptr && skip->phase == Phase::kForward;
    diagnosis_.kind = swallowed ? "swallowed_exception" : "skipped_step";
    diagnosis_.catalog = swallowed ? "K06" : "K08";
    diagnosis_.ranks = ranks_;
    diagnosis_.step = step;
    const std::string why = skip == nullptr
                                ? std::string()
                                : fmt::format(" ({}: {})", to_string(skip->phase), skip->what);
    diagnosis_.because = fmt::format(
        "{} went on to the next batch without the collectives of step {}{}: from there on {} step "
        "s+1 met the others' step s",
        rank_list(ranks_), step, why, ranks_.size() == 1 ? "its" : "their");
    diagnosis_.first_cause = fmt::format("{} left out step {}", rank_list(ranks_), step);
    diagnosis_.fix = swallowed
                         ? "let the exception end the rank, or tell all ranks to skip the step (an "
                           "all-reduce of a flag) before anybody goes on"
                         : "decide together: reduce the flag (max) and skip on every rank, or run "
                           "backward on a loss times 0";
  }

  void another_collective() {
    // The majority's collective is the usual one; the odd ranks have one more, or leave it out.
    diagnosis_.catalog = "K05";
    if (own(odd_) == 1 && own(usual_) == 1) {
      diagnosis_.kind = "different_collectives";
      diagnosis_.because = fmt::format(
          "collective #{} is not the same call on all ranks: {} issued {}{}, {} issued {}{}",
          odd_.sequence, rank_list(mismatch_.groups[0].ranks), describe_collective(usual_),
          own_site_of(usual_), rank_list(mismatch_.groups[1].ranks), describe_collective(odd_),
          own_site_of(odd_));
      diagnosis_.fix =
          "issue these collectives on every rank, in one order that does not depend on the rank's "
          "data (sort the keys)";
    } else if (own(odd_) > own(usual_)) {
      diagnosis_.kind = "extra_collective";
      diagnosis_.because =
          fmt::format("{} {} one collective more than the others: {}{}, while they are in {}",
                      rank_list(ranks_), verb(ranks_, "issues", "issue"), describe_collective(odd_),
                      own_site_of(odd_), describe_collective(usual_));
      diagnosis_.fix = odd_.label.what == "buffers"
                           ? "a forward through DDP broadcasts buffers: evaluate with the model "
                             "inside it, or on all ranks"
                           : "issue it on every rank, or on none";
    } else {
      diagnosis_.kind = "missing_collective";
      diagnosis_.because = fmt::format(
          "{} {} out a collective that the others issue: they are in {}{}, {} in {}",
          rank_list(ranks_), verb(ranks_, "leaves", "leave"), describe_collective(usual_),
          own_site_of(usual_), rank_list(ranks_), describe_collective(odd_));
      diagnosis_.fix = "issue it on every rank, also where there is nothing to say";
    }
    diagnosis_.first_cause = diagnosis_.because;
  }

  void symptom() {
    const auto frontier = find_frontier(digest_);
    const std::int64_t harmed = mispaired(digest_, mismatch_);
    diagnosis_.first_symptom =
        fmt::format("collective #{} of {} is not the same on all ranks: {}", usual_.sequence,
                    usual_.group, mismatch_.describe("issued", "issued"));
    if (harmed > 0) {
      diagnosis_.consequences.push_back(
          fmt::format("{} from #{} on met collectives that were not their like, without an error",
                      count_of(harmed, "collective"), usual_.sequence));
    }
    if (digest_.all_finished()) {
      diagnosis_.verdict = "silent divergence";
    } else if (digest_.first_failure == FirstFailure::kError) {
      diagnosis_.verdict = "desync";
    } else {
      diagnosis_.verdict = "deadlock";
      if (frontier) diagnosis_.first_symptom = gradsync::diagnosis::describe(*frontier);
    }
    if (mismatch_.tie()) {
      note_tie(diagnosis_);
    } else if (mismatch_.groups[0].ranks.size() * 2 <= digest_.ranks.size()) {
      diagnosis_.confidence = "likely";
      diagnosis_.notes.push_back("ranks that have not come to it could turn the majority");
    }
  }

  const Digest& digest_;
  const Mismatch& mismatch_;
  const bool swapped_;  ///< the first group is the odd one
  const CollectiveRecord& usual_;
  const CollectiveRecord& odd_;
  std::vector<int> ranks_;
  Diagnosis diagnosis_;
};

}  // namespace

std::optional<Diagnosis> find_out_of_step(const Digest& digest) {
  if (digest.first_failure == FirstFailure::kDeath) return std::nullopt;
  const auto mismatch = first_mismatch(digest);
  if (!mismatch) return std::nullopt;
  return OutOfStep(digest, *mismatch).describe();
}

}  // namespace gradsync::diagnosis
