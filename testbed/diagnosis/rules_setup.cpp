#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

/// "parameter fc.weight float32 [2, 3]" -> "fc.weight"
std::string name_of(const std::string& tensor) {
  const auto begin = tensor.find(' ') + 1;
  return tensor.substr(begin, tensor.find(' ', begin) - begin);
}

/// The kind of difference between two lists of tensors at their first differing position.
struct ModelDifference {
  std::size_t position = 0;
  DiagnosisKind kind = DiagnosisKind::kParameterCount;
  std::string usual, odd;
};

ModelDifference compare_models(const std::vector<std::string>& usual,
                               const std::vector<std::string>& odd) {
  ModelDifference difference;
  const std::size_t common = std::min(usual.size(), odd.size());
  std::size_t& at = difference.position;
  while (at < common && usual[at] == odd[at]) ++at;
  difference.usual = at < usual.size() ? usual[at] : "nothing more";
  difference.odd = at < odd.size() ? odd[at] : "nothing more";
  const auto sorted = [](std::vector<std::string> list) {
    std::sort(list.begin(), list.end());
    return list;
  };
  if (usual.size() != odd.size()) {
    difference.kind = DiagnosisKind::kParameterCount;
  } else if (sorted(usual) == sorted(odd)) {
    difference.kind = DiagnosisKind::kParameterOrder;
  } else if (name_of(difference.usual) == name_of(difference.odd)) {
    difference.kind = DiagnosisKind::kParameterShape;
  } else {
    difference.kind = DiagnosisKind::kParameterName;
  }
  return difference;
}

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// The ranks that a sentence begins with: {0, 2, 3} for "ranks 0, 2-3: ...".
std::vector<int> ranks_named_first(const std::string& sentence) {
  std::vector<int> ranks;
  if (!sentence.starts_with("rank ") && !sentence.starts_with("ranks ")) return ranks;
  const char* at = sentence.data() + sentence.find(' ') + 1;
  const char* end = sentence.data() + std::min(sentence.find(':'), sentence.size());
  while (at < end) {
    int first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc()) return {};
    int last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
      if (parsed.ec != std::errc()) return {};
    }
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
    at = std::find_if(parsed.ptr, end, [](char c) { return c >= '0' && c <= '9'; });
  }
  return ranks;
}

/// Whom `failed` blames, and all ranks that failed with the same words: what every rank has wrong
/// is the configuration's.
std::vector<int> failed_alike(const Digest& digest, const RankView& failed) {
  const auto words = [](const RankView& view) {
    const std::string& error = view.report->error;
    return error.substr(std::min(error.find(": "), error.size()));
  };
  std::vector<int> ranks = ranks_named_first(failed.report->error);
  std::erase_if(ranks, [&](int rank) { return rank >= static_cast<int>(digest.ranks.size()); });
  if (ranks.empty()) ranks = {failed.rank};
  for (const RankView& view : digest.ranks) {
    // A sentence that the ranks share names those to blame; others have it in their own name.
    const bool own = view.report != nullptr &&
                     ranks_named_first(view.report->error) == std::vector<int>{view.rank};
    if (own && words(view) == words(failed)) ranks.push_back(view.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace

/// A rank whose process ended with its own error before all ranks had met: it could not host or
/// reach the store, or the others joined as another job.
std::optional<Diagnosis> find_start_failed(const Digest& digest) {
  const RankView* failed = nullptr;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr || view.testified) continue;
    const RankReport& report = *view.report;
    const bool in_start = report.state == RankState::kFailed && report.phase == Phase::kInit &&
                          report.parameter_tensors == 0 && view.collectives.empty() &&
                          !report.failed_collective && report.unreachable.empty();
    // A missing rank is detected by a timeout; a rank that cannot even reach the store reports
    // that.
    const bool of_others =
        report.error_code == ErrorCode::kPeerFailed || report.error_code == ErrorCode::kRankDied ||
        (report.error_code == ErrorCode::kTimeout && !report.error.starts_with("store "));
    if (!in_start || of_others || report.error.empty()) continue;
    if (failed == nullptr || report.ended < failed->report->ended) failed = &view;
  }
  if (failed == nullptr) return std::nullopt;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kStartFailed, "crash");
  diagnosis.ranks = failed_alike(digest, *failed);
  diagnosis.because = failed->report->error;
  diagnosis.first_cause =
      fmt::format("{} failed before all ranks had met", rank_list(diagnosis.ranks));
  diagnosis.first_symptom = diagnosis.ranks.size() == digest.ranks.size()
                                ? "no rank gets past the rendezvous"
                                : "the others wait at the rendezvous";
  return diagnosis;
}

std::optional<Diagnosis> find_duplicate_device(const Digest& digest) {
  std::map<std::int64_t, std::vector<int>> ranks_by_device;
  for (const RankView& view : digest.ranks) {
    if (view.report != nullptr && view.report->device_claimed) {
      ranks_by_device[*view.report->device_claimed].push_back(view.rank);
    }
  }
  for (const auto& [device, ranks] : ranks_by_device) {
    if (ranks.size() < 2) continue;
    Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kDuplicateDevice, "crash");
    diagnosis.ranks = ranks;
    diagnosis.because = fmt::format("{} use device {}", rank_list(ranks), device);
    diagnosis.first_cause = diagnosis.because;
    diagnosis.first_symptom = "the first collective, in which devices are compared, fails";
    return diagnosis;
  }
  return std::nullopt;
}

std::optional<Diagnosis> find_different_model(const Digest& digest) {
  std::map<std::vector<std::string>, std::vector<int>> ranks_by_model;
  for (const RankView& view : digest.ranks) {
    if (view.report != nullptr && !view.report->tensors.empty()) {
      ranks_by_model[view.report->tensors].push_back(view.rank);
    }
  }
  if (ranks_by_model.size() < 2) return std::nullopt;
  std::map<std::string, std::vector<int>> ranks_by_text;  // the first rank represents the model
  for (const auto& [model, ranks] : ranks_by_model) {
    ranks_by_text[fmt::format("{}", ranks.front())] = ranks;
  }
  const Disagreement disagreement = compare_ranks(ranks_by_text, digest.absent().size());
  const auto model_of = [&](std::size_t group) -> const std::vector<std::string>& {
    return digest.ranks[static_cast<std::size_t>(disagreement.groups[group].ranks.front())]
        .report->tensors;
  };
  const ModelDifference difference = compare_models(model_of(0), model_of(1));

  Diagnosis diagnosis = make_diagnosis(difference.kind, "desync");
  diagnosis.ranks = disagreement.odd_ranks();
  diagnosis.because = fmt::format(
      "the ranks do not give DDP the same model; first difference at position {}: {} {} {}, {} {} "
      "{}",
      difference.position, rank_list(disagreement.groups[0].ranks),
      verb(disagreement.groups[0].ranks, "has", "have"), difference.usual,
      rank_list(disagreement.groups[1].ranks), verb(disagreement.groups[1].ranks, "has", "have"),
      difference.odd);
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom = "DDP's constructor compares the models and refuses";
  if (difference.kind == DiagnosisKind::kParameterOrder) {
    diagnosis.notes.push_back(fmt::format(
        "PyTorch compares shapes alone: where they are equal it would sum the gradients of {} and "
        "{} without an error",
        name_of(difference.usual), name_of(difference.odd)));
  }
  note_majority(diagnosis, disagreement);
  return diagnosis;
}

std::optional<Diagnosis> find_group_creation(const Digest& digest) {
  constexpr std::string_view kPrefix = "new_group ";
  const CollectiveRecord* creation = nullptr;
  std::vector<int> called, absent;
  for (const RankView& view : digest.ranks) {
    for (const CollectiveRecord* record : view.collectives) {
      if (record->group.starts_with(kPrefix) && record->state != CollectiveState::kCompleted &&
          creation == nullptr) {
        creation = record;
      }
    }
  }
  if (creation == nullptr) return std::nullopt;
  for (const RankView& view : digest.ranks) {
    const bool here = std::any_of(
        view.collectives.begin(), view.collectives.end(),
        [&](const CollectiveRecord* record) { return record->group == creation->group; });
    if (here || view.report != nullptr) (here ? called : absent).push_back(view.rank);
  }
  if (absent.empty()) return std::nullopt;
  const bool one_failed =
      digest.first_failure == FirstFailure::kError || digest.first_failure == FirstFailure::kDeath;
  if (one_failed && contains(absent, digest.first_failed_rank)) return std::nullopt;
  const std::string name = creation->group.substr(kPrefix.size());
  // Ranks that did not call may be creating another group of their own; then no call is made by all
  // ranks.
  std::string elsewhere;
  for (const int rank : absent) {
    const CollectiveRecord* pending = digest.ranks[static_cast<std::size_t>(rank)].pending;
    if (pending != nullptr && pending->group.starts_with(kPrefix)) {
      elsewhere = "; they are in new_group for " + pending->group.substr(kPrefix.size());
    }
  }
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kGroupCreation, "deadlock");
  diagnosis.ranks = absent;
  if (!elsewhere.empty()) {
    diagnosis.ranks.insert(diagnosis.ranks.end(), called.begin(), called.end());
    std::sort(diagnosis.ranks.begin(), diagnosis.ranks.end());
  }
  diagnosis.collective = describe_collective(*creation);
  diagnosis.because =
      fmt::format("{} of {} ranks called new_group for {}: {} did, {} did not{}", called.size(),
                  digest.ranks.size(), name, rank_list(called), rank_list(absent), elsewhere);
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom =
      fmt::format("{} {} in new_group", rank_list(called), verb(called, "waits", "wait"));
  diagnosis.fix = fmt::format(
      "call new_group on every rank, members or not, in the same order (ranks [] in the fault "
      "that makes the group {})",
      name);
  return diagnosis;
}

std::optional<Diagnosis> find_unreachable(const Digest& digest) {
  std::map<int, std::vector<int>> named_by;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    for (const int rank : view.report->unreachable) named_by[rank].push_back(view.rank);
  }
  if (named_by.empty()) return std::nullopt;
  std::size_t most = 0;
  for (const auto& [rank, witnesses] : named_by) most = std::max(most, witnesses.size());
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kUnreachable, "deadlock");
  std::vector<int> witnesses;
  for (const auto& [rank, by] : named_by) {
    if (by.size() < most) continue;
    diagnosis.ranks.push_back(rank);
    witnesses = by;
  }
  const RankReport& witness = *digest.ranks[static_cast<std::size_t>(witnesses.front())].report;
  diagnosis.because = fmt::format(
      "{} joined and published an address at which the others do not "
      "reach it: {}",
      rank_list(diagnosis.ranks), witness.error);
  diagnosis.first_cause = fmt::format("the address of {}", rank_list(diagnosis.ranks));
  diagnosis.first_symptom =
      fmt::format("{} {} not connect to {}, before the first step", rank_list(witnesses),
                  verb(witnesses, "does", "do"), rank_list(diagnosis.ranks));
  diagnosis.fix = fmt::format(
      "set the network interface on the node of {} (gloo.interface, GLOO_SOCKET_IFNAME) to the one "
      "that the other nodes reach, not lo, a bridge or a VPN",
      rank_list(diagnosis.ranks));
  return diagnosis;
}

std::optional<Diagnosis> find_not_joined(const Digest& digest) {
  const std::vector<int> absent = digest.with(Standing::kUnknown);
  if (absent.empty() || absent.size() == digest.ranks.size()) return std::nullopt;
  if (!digest.absent().empty()) return std::nullopt;  // a missing file is not a missing rank
  const bool nobody_failed = digest.first_failure == FirstFailure::kNone;
  if (digest.first_failure != FirstFailure::kTimeout && !nobody_failed) return std::nullopt;
  std::vector<int> waiting;
  for (const RankView& view : digest.ranks) {
    if (view.standing == Standing::kUnknown) continue;
    const bool has_met_others = view.last_completed != nullptr;
    const bool waits =
        view.pending != nullptr || view.timed_out || view.report->error_code == ErrorCode::kTimeout;
    if (view.report->phase != Phase::kInit || has_met_others || !waits) return std::nullopt;
    waiting.push_back(view.rank);
  }
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kNotJoined, "deadlock");
  diagnosis.ranks = absent;
  diagnosis.because = fmt::format("{} never joined the job: {} of {} ranks came", rank_list(absent),
                                  digest.ranks.size() - absent.size(), digest.ranks.size());
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom = fmt::format("{} {} for them before the first step", rank_list(waiting),
                                        verb(waiting, "waits", "wait"));
  diagnosis.fix = fmt::format(
      "start {} ranks, all with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and look at the "
      "output of those that did not come",
      digest.ranks.size());
  return diagnosis;
}

}  // namespace gradsync::diagnosis
