#include "gradsync/backends/gloo/run_on_gloo.hpp"

#include "gradsync/core/error.hpp"
#include "gradsync/core/wall_clock.hpp"

namespace gradsync {

void run_on_gloo(const std::function<void(ProcessGroup&, Clock&)>& rank,
                 const GlooProcessGroup::Options& options) {
  const auto environment = resolve_rank_environment({});
  if (!environment) {
    throw Error(ErrorCode::kUsage,
                "this process is not a rank of a job: start it with a launcher, such as gradsync "
                "launch --nproc-per-node 2 -- PROGRAM");
  }
  const JobStore job = open_job_store(*environment, options.timeout);
  WallClock clock;
  GlooProcessGroup group(*environment, job, clock, options);
  rank(group, clock);
  group.shutdown();
}

}  // namespace gradsync
