#include "gradsync/backends/rank/gloo_rank.hpp"

#include <algorithm>
#include <vector>

#include "gradsync/backends/gloo/gloo_process_group.hpp"
#include "gradsync/core/wall_clock.hpp"
#include "gradsync/testbed/faults/rendezvous_fault.hpp"
#include "gradsync/testbed/rank/factories.hpp"

namespace gradsync {

RankProcessResult run_gloo_rank(const Scenario& scenario, const RankEnvironment& environment,
                                const RankProcessOptions& options) {
  return run_rank_process(scenario, environment, options, [&](RankProcess& process) {
    WallClock clock(process.clock_origin());
    GlooProcessGroup::Options group_options{make_group_options(scenario),
                                            static_cast<int>(scenario.gloo.threads),
                                            scenario.gloo.interface};
    const std::vector<int> wrong =
        ranks_with_wrong_address(scenario.faults, environment.world_size);
    group_options.wrong_address =
        std::find(wrong.begin(), wrong.end(), environment.rank) != wrong.end();
    GlooProcessGroup group(environment, process.job(), clock, group_options);
    process.run(
        group, [&](ErrorCode code, const std::string& cause) { group.abort(code, cause); }, clock,
        cpu_device());
  });
}

}  // namespace gradsync
