#include "gradsync/backends/store/end_watcher.hpp"

#include <fmt/format.h>

namespace gradsync {

EndWatcher::EndWatcher(const RankEnvironment& environment, Seconds connect_timeout,
                       std::function<void(const std::optional<Failure>&)> on_end)
    : environment_(environment),
      job_(connect_job_store(environment, connect_timeout)),
      on_end_(std::move(on_end)),
      thread_([this] { watch(); }) {}

EndWatcher::~EndWatcher() {
  stopped_ = true;
  job_.connection->close();
  thread_.join();
}

void EndWatcher::watch() {
  constexpr Seconds kLong{3600};
  while (!stopped_) {
    try {
      const std::optional<Failure> end = wait_for_end(*job_.store, kLong);
      if (!stopped_) on_end_(end);
      return;
    } catch (const StoreTimeout&) {
      continue;
    } catch (const Error& e) {
      if (stopped_) return;
      Failure lost;
      lost.rank = environment_.agent_store ? -1 : 0;
      lost.code = ErrorCode::kRankDied;
      lost.cause = environment_.agent_store
                       ? fmt::format("the launcher died: its store is gone ({})", e.what())
                       : fmt::format("died: the store that it served is gone ({})", e.what());
      on_end_(lost);
      return;
    }
  }
}

}  // namespace gradsync
