#include "gradsync/testbed/record/rank_report.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "gradsync/comm/comm_error.hpp"

namespace gradsync {

const char* to_string(RankState state) noexcept {
  switch (state) {
    case RankState::kRunning:
      return "running";
    case RankState::kFinished:
      return "finished";
    case RankState::kFailed:
      return "failed";
  }
  return "unknown";
}

const char* to_string(RankEventKind kind) noexcept {
  switch (kind) {
    case RankEventKind::kSkipped:
      return "skipped";
    case RankEventKind::kLeftLoop:
      return "left_loop";
    case RankEventKind::kRaised:
      return "raised";
  }
  return "unknown";
}

void note_error(RankReport& report, const std::exception& error) {
  report.state = RankState::kFailed;
  if (!report.error.empty()) return;
  report.error = error.what();
  report.error_code = ErrorCode::kInternal;
  if (const auto* known = dynamic_cast<const Error*>(&error)) report.error_code = known->code();
  if (const auto* connect = dynamic_cast<const ConnectError*>(&error)) {
    report.unreachable = connect->unreachable();
  }
  if (const auto* comm = dynamic_cast<const CommError*>(&error)) {
    report.failed_collective = comm->record();
  }
}

std::vector<const CollectiveRecord*> all_collectives(const RankReport& report) {
  // If both have a collective, the flight recorder's copy is newer.
  std::set<std::pair<std::string_view, std::int64_t>> in_flight;
  std::vector<const CollectiveRecord*> all;
  for (const CollectiveRecord& record : report.flight) {
    in_flight.emplace(record.group, record.sequence);
    all.push_back(&record);
  }
  for (const CollectiveRecord& record : report.collectives) {
    if (!in_flight.contains({record.group, record.sequence})) all.push_back(&record);
  }
  std::sort(all.begin(), all.end(), [](const CollectiveRecord* a, const CollectiveRecord* b) {
    return std::tie(a->issued, a->group, a->sequence) < std::tie(b->issued, b->group, b->sequence);
  });
  return all;
}

}  // namespace gradsync
