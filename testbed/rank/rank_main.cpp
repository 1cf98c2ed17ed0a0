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

/// From an error of a rank's own until the others are told. They need it to come to where they wait
/// for this rank, or to the same error of their own: only then do their records say which of the
/// two it is. A process that raises takes longer than that to go.
constexpr Seconds kTellOthersAfter{0.3};

/// Waits until every rank is done. What happens to the others meanwhile does not undo what this
/// rank has finished, but the diagnosis wants to know.
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

/// Parts of the engine that know no rank leave it to us: "rank 1, step 2 backward: ...".
std::string with_rank(const std::string& what, const RankReport& report) {
  const std::string rank = fmt::format("rank {}", report.rank);
  if (what.find(rank) != std::string::npos) return what;
  // What comes after the update comes when the step is counted already.
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
  // Outside the handlers: in the simulator other ranks run while this one waits.
  keeper.cleans_up();
  if (runtime.before_clean_up) runtime.before_clean_up();
  clean_up(scenario.faults, report.rank, *runtime.clock, runtime.block);
  std::rethrow_exception(failure);
}

}  // namespace gradsync
