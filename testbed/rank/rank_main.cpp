#include "gradsync/testbed/rank/rank_main.hpp"

#include <exception>
#include <string>

#include <fmt/format.h>

#include "gradsync/comm/comm_error.hpp"
#include "gradsync/testbed/faults/clean_up_fault.hpp"
#include "gradsync/testbed/rank/rank_training.hpp"
#include "gradsync/testbed/record/report_keeper.hpp"

namespace gradsync {
namespace {

/// Delay between a rank's own error and telling the others. The others need this time to reach the
/// point where they wait for this rank, or to hit the same error themselves: only then do their
/// records show which of the two it is. A process that raises takes longer than that to exit.
constexpr Seconds kTellOthersAfter{0.3};

/// Waits until every rank is done. A failure of another rank in the meantime does not undo what
/// this rank has finished, but the diagnosis needs it.
void shut_down(ProcessGroup& group, ReportKeeper& keeper) {
  keeper.enter(Phase::kShutdown);
  try {
    group.shutdown();
  } catch (const Error& error) {
    const bool of_others = error.code() == ErrorCode::kPeerFailed ||
                           error.code() == ErrorCode::kTimeout ||
                           error.code() == ErrorCode::kRankDied;
    if (!of_others) throw;
    keeper.error(error.code(), error.what());
  }
}

/// Adds the rank and position to errors of engine parts that do not know them: "rank 1, step 2
/// backward: ...".
std::string with_rank(const std::string& what, const RankReport& report) {
  const std::string rank = fmt::format("rank {}", report.rank);
  if (what.find(rank) != std::string::npos) return what;
  // Whatever follows the update runs when the step has already been counted.
  const bool in_step = report.phase == Phase::kData || report.phase == Phase::kForward ||
                       report.phase == Phase::kBackward || report.phase == Phase::kOptimizer;
  const std::string step = in_step ? fmt::format("step {} ", report.steps_completed) : "";
  return fmt::format("{}, {}{}: {}", rank, step, to_string(report.phase), what);
}

}  // namespace

void run_rank(const Scenario& scenario, const RankRuntime& runtime, RankReport& report) {
  report.rank = runtime.process_group->rank();
  report.world_size = runtime.process_group->size();
  runtime.process_group->set_detail(scenario.detail);
  ReportKeeper keeper(report, *runtime.clock, runtime.process_group->flight_recorder(),
                      runtime.report_mutex, report.rank < scenario.output.detail_ranks);
  keeper.enter(Phase::kInit);
  std::exception_ptr failure;
  try {
    train_rank(scenario, runtime, keeper);
    keeper.finished();
    shut_down(*runtime.process_group, keeper);
    return;
  } catch (const CommError& error) {
    keeper.update([&](RankReport& r) { r.failed_collective = error.record(); });
    keeper.failed(error.code(), error.what());
    failure = std::current_exception();
  } catch (const Error& error) {
    const std::string what = with_rank(error.what(), report);
    keeper.failed(error.code(), what);
    runtime.clock->sleep(kTellOthersAfter);
    failure = what == error.what() ? std::current_exception()
                                   : std::make_exception_ptr(Error(error.code(), what));
  } catch (const std::exception& error) {
    const std::string what = with_rank(error.what(), report);
    keeper.failed(ErrorCode::kInternal, what);
    runtime.clock->sleep(kTellOthersAfter);
    failure = std::make_exception_ptr(Error(ErrorCode::kInternal, what));
  }
  // Outside the catch blocks: in the simulator other ranks run while this one waits.
  keeper.cleans_up();
  if (runtime.before_clean_up) runtime.before_clean_up();
  clean_up(scenario.faults, report.rank, *runtime.clock, runtime.block);
  std::rethrow_exception(failure);
}

}  // namespace gradsync
