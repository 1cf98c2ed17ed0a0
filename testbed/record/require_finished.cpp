#include "gradsync/testbed/record/require_finished.hpp"

#include <fmt/format.h>

#include "gradsync/comm/signature.hpp"

namespace gradsync {
namespace {

/// A rank without an error that did not finish: what it still waits for, if that is known.
std::string unfinished(const RankReport& report) {
  if (!report.flight.empty() && report.flight.back().state != CollectiveState::kCompleted) {
    return fmt::format("rank {} did not finish: it waits for the other ranks in {}", report.rank,
                       signature(report.flight.back()));
  }
  return fmt::format("rank {} did not finish", report.rank);
}

}  // namespace

void require_finished(const std::vector<RankReport>& reports) {
  const RankReport* failed = nullptr;
  for (const RankReport& report : reports) {
    if (report.state == RankState::kFinished) continue;
    const bool is_consequence = report.error_code == ErrorCode::kPeerFailed || report.error.empty();
    if (failed == nullptr || !is_consequence) failed = &report;
    if (!is_consequence) break;
  }
  if (failed == nullptr) return;
  throw Error(failed->error_code.value_or(ErrorCode::kTimeout),
              failed->error.empty() ? unfinished(*failed) : failed->error);
}

}  // namespace gradsync
