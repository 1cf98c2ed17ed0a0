#include "gradsync/testbed/diagnosis/testimony.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/testbed/diagnosis/misuse_words.hpp"

namespace gradsync::diagnosis {
namespace {

/// Parses a text from its front.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool skip(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  /// Moves behind the next `word`; returns false without moving if there is none.
  bool skip_to(std::string_view word) {
    const auto at = text_.find(word);
    if (at == std::string_view::npos) return false;
    text_.remove_prefix(at + word.size());
    return true;
  }
  std::optional<std::int64_t> number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return value;
  }
  std::string_view word_until(std::string_view ends) {
    const std::string_view word = text_.substr(0, text_.find_first_of(ends));
    text_.remove_prefix(word.size());
    return word;
  }
  /// The text up to the first of these, or all of it.
  std::string_view until(std::string_view one, std::string_view other) {
    const std::string_view part = text_.substr(0, std::min(text_.find(one), text_.find(other)));
    text_.remove_prefix(part.size());
    return part;
  }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

template <typename Enum>
std::optional<Enum> enum_of(std::string_view word, Enum first, Enum last) {
  for (int i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
    if (word == to_string(static_cast<Enum>(i))) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// The inverse of signature(); nullopt if the text is not a signature.
std::optional<CollectiveRecord> parse_signature(std::string_view text) {
  Reader reader(text);
  CollectiveRecord record;
  const auto op = enum_of(reader.word_until(" "), OpType::kAllreduce, OpType::kBarrier);
  if (!op) return std::nullopt;
  record.op = *op;
  if (reduces(*op) && reader.skip(" (")) {
    const auto reduce = enum_of(reader.word_until(")"), ReduceOp::kSum, ReduceOp::kAverage);
    if (reduce) record.reduce_op = *reduce;
    reader.skip(")");
  }
  if (reader.skip(" (root ")) {
    record.root = static_cast<std::int32_t>(reader.number().value_or(-1));
    reader.skip(")");
  } else if (reader.skip(" to rank ") || reader.skip(" from rank ")) {
    record.root = static_cast<std::int32_t>(reader.number().value_or(-1));
  }
  if (!reader.skip(" of ")) return std::nullopt;
  record.elements = reader.number().value_or(0);
  reader.skip(" ");
  try {
    record.dtype = parse_dtype(std::string(reader.word_until(" ")));
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
  reader.skip(" elements");
  if (reader.skip(", step ")) record.label.step = reader.number().value_or(-1);
  if (reader.skip(" (epoch ")) {
    record.label.epoch = reader.number().value_or(-1);
    reader.skip(")");
  }
  if (reader.skip(", micro step ")) record.label.micro_step = reader.number().value_or(0);
  if (reader.skip(", bucket ")) {
    record.label.bucket = static_cast<std::int32_t>(reader.number().value_or(-1));
  }
  if (reader.skip(" (")) record.label.what = std::string(reader.word_until(")"));
  return record;
}

/// Reads the position from "rank 2, step 2 (epoch 0) forward: ...".
void read_place(RankReport& report, std::string_view cause) {
  Reader reader(cause);
  if (!reader.skip("rank ") || !reader.number() || !reader.skip(", ")) return;
  report.phase = Phase::kForward;
  if (reader.skip("step ")) {
    report.steps_completed = reader.number().value_or(0);
    if (reader.skip(" (epoch ")) reader.skip_to(")");
    reader.skip(" ");
  }
  const auto phase = enum_of(reader.word_until(": "), Phase::kInit, Phase::kShutdown);
  if (phase) report.phase = *phase;
}

/// Reads "(signal 9)" or "(exit status 9)"; there is neither if the connection was closed.
void read_end(RankReport& report, std::string_view how) {
  Reader reader(how);
  if (reader.skip("(signal ")) {
    if (const auto signal = reader.number()) report.exit_signal = static_cast<int>(*signal);
  } else if (reader.skip("(exit status ")) {
    if (const auto status = reader.number()) report.exit_code = static_cast<int>(*status);
  }
}

class Testimonies {
 public:
  void hear(const RankReport& witness) {
    hear_of_failure(witness);
    hear_of_death(witness);
    hear_of_mismatch(witness);
  }
  std::map<int, RankReport> take() { return std::move(of_rank_); }

 private:
  RankReport& report_of(std::int64_t rank, const RankReport& witness) {
    const auto [entry, added] = of_rank_.try_emplace(static_cast<int>(rank));
    RankReport& report = entry->second;
    if (added || witness.ended < report.ended) report.ended = witness.ended;
    report.rank = entry->first;
    report.world_size = witness.world_size;
    report.first_step = witness.first_step;
    return report;
  }

  /// N and the text after "rank N MARK".
  static std::optional<std::pair<std::int64_t, std::string_view>> told(std::string_view error,
                                                                       std::string_view mark) {
    const auto at = error.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const auto begin = error.rfind("rank ", at);
    if (begin == std::string_view::npos) return std::nullopt;
    Reader reader(error.substr(begin));
    reader.skip("rank ");
    const auto rank = reader.number();
    if (!rank || !reader.skip(mark)) return std::nullopt;
    return std::pair(*rank, reader.rest());
  }

  void hear_of_failure(const RankReport& witness) {
    if (witness.error_code != ErrorCode::kPeerFailed) return;
    auto failed = told(witness.error, " failed first: ");
    if (!failed) failed = told(witness.error, " failed: ");
    if (!failed || failed->second.find("timed out") != std::string_view::npos) return;
    RankReport& report = report_of(failed->first, witness);
    report.state = RankState::kFailed;
    report.error = std::string(failed->second);
    report.error_code = find_misuse_words(report.error) ? ErrorCode::kMisuse : ErrorCode::kInternal;
    report.parameter_tensors = 1;
    read_place(report, report.error);
  }

  void hear_of_death(const RankReport& witness) {
    if (witness.error_code != ErrorCode::kRankDied) return;
    const auto dead = told(witness.error, " died ");
    if (!dead) return;
    RankReport& report = report_of(dead->first, witness);
    report.error_code = ErrorCode::kRankDied;
    report.error = "died " + std::string(dead->second);
    read_end(report, dead->second);
  }

  void hear_of_mismatch(const RankReport& witness) {
    if (witness.error_code != ErrorCode::kDesync) return;
    Reader reader(witness.error);
    if (!reader.skip_to("collective #")) return;
    const auto sequence = reader.number();
    if (!sequence || !reader.skip(" is not the same on all ranks: ")) return;
    while (reader.skip("rank ")) {
      const auto rank = reader.number();
      if (!rank || !reader.skip(" issued ")) return;
      const std::string_view text = reader.until("; rank ", ". All ranks");
      if (auto record = parse_signature(text)) {
        record->sequence = *sequence;
        record->group =
            witness.failed_collective ? witness.failed_collective->group : kDefaultGroupName;
        record->state = CollectiveState::kFailed;
        record->issued = witness.ended;
        RankReport& report = report_of(*rank, witness);
        report.state = RankState::kFailed;
        report.error_code = ErrorCode::kDesync;
        report.error = witness.error;
        report.phase = Phase::kBackward;
        report.steps_completed = std::max<std::int64_t>(record->label.step, 0);
        report.flight = {*record};
      }
      if (!reader.skip("; ")) return;
    }
  }

  std::map<int, RankReport> of_rank_;
};

}  // namespace

std::map<int, RankReport> read_testimonies(const std::vector<RankReport>& reports) {
  Testimonies testimonies;
  for (const RankReport& report : reports) testimonies.hear(report);
  return testimonies.take();
}

}  // namespace gradsync::diagnosis
