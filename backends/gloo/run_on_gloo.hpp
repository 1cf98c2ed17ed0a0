#pragma once

#include <functional>

#include "gradsync/backends/gloo/gloo_process_group.hpp"
#include "gradsync/core/clock.hpp"

namespace gradsync {

/// Runs `rank` in this process, as the rank of a Gloo job that a launcher assigned to it (`gradsync
/// launch`, torchrun, mpirun, srun: see resolve_rank_environment). `rank` issues its collectives on
/// the group and must not shut it down: that is done here, after it has returned, and waits until
/// every rank is that far.
///
/// Throws Error(kUsage) without a launcher, and for an environment that contradicts itself;
/// whatever the store, the rendezvous and the collectives throw; and what `rank` throws, after
/// telling the other ranks that this one is gone.
void run_on_gloo(const std::function<void(ProcessGroup&, Clock&)>& rank,
                 const GlooProcessGroup::Options& options = {});

}  // namespace gradsync
