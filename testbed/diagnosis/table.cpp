#include "gradsync/testbed/diagnosis/table.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

DiagnosisRow row_of(const RankView& view, const Sequences& sequences) {
  DiagnosisRow row;
  row.ranks = {view.rank};
  row.state = to_string(view.standing);
  if (view.report == nullptr) return row;
  const RankReport& report = *view.report;
  const bool left_a_report = report.parameter_tensors > 0 || !report.flight.empty();
  if (left_a_report || view.standing != Standing::kDied) {
    row.phase = to_string(report.phase);
    row.since = report.phase_since;
    row.steps_completed = report.steps_completed;
  }
  row.exit_code = report.exit_code;
  if (view.standing != Standing::kBlocked) {
    if (const CollectiveRecord* next = sequences.next_expected(view.rank))
      row.next_expected = describe_collective(*next);
  }
  if (view.last_completed != nullptr)
    row.last_completed = describe_collective(*view.last_completed);
  switch (view.standing) {
    case Standing::kBlocked:
      if (view.pending != nullptr) {
        row.blocked_in = describe_collective(*view.pending);
        row.waits_for = sequences.missing_from(*view.pending);
        row.since = view.pending->issued;
      }
      break;
    case Standing::kFailed:
      row.detail = report.error;
      row.since = report.ended;
      break;
    case Standing::kDied:
      if (report.ended > Seconds{0}) row.since = report.ended;
      if (report.exit_signal) {
        row.detail = describe_signal(*report.exit_signal);
      } else if (report.exit_code) {
        row.detail = fmt::format("exit status {}", *report.exit_code);
      }
      break;
    default:
      break;
  }
  return row;
}

bool alike(const DiagnosisRow& a, const DiagnosisRow& b) {
  const auto what = [](const DiagnosisRow& row) {
    return std::tie(row.state, row.phase, row.last_completed, row.blocked_in, row.detail,
                    row.steps_completed, row.exit_code, row.waits_for, row.next_expected);
  };
  return what(a) == what(b);
}

}  // namespace

std::vector<DiagnosisRow> make_table(const Digest& digest, const Sequences& sequences) {
  std::vector<DiagnosisRow> table;
  for (const RankView& view : digest.ranks) {
    DiagnosisRow row = row_of(view, sequences);
    const auto same = std::find_if(table.begin(), table.end(),
                                   [&](const DiagnosisRow& other) { return alike(other, row); });
    if (same == table.end()) {
      table.push_back(std::move(row));
    } else {
      same->ranks.push_back(view.rank);
      if (row.since && (!same->since || *row.since < *same->since)) same->since = row.since;
    }
  }
  return table;
}

}  // namespace gradsync::diagnosis
