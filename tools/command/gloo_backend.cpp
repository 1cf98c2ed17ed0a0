#include "tools/command/backends.hpp"

#ifdef GRADSYNC_HAVE_GLOO
#include "gradsync/backends/rank/gloo_rank.hpp"
#include "tools/command/rank_request.hpp"
#endif

namespace gradsync {
namespace {

#ifdef GRADSYNC_HAVE_GLOO
RankResult run_rank_on_gloo(const Scenario& scenario, const RankRequest& request) {
  return rank_result(run_gloo_rank(scenario, request.environment, process_options(request)));
}
#endif

}  // namespace

Backend gloo_backend() {
  Backend backend;
  backend.name = "gloo";
  backend.summary = "real training on CPUs: one process per rank, Gloo over TCP";
#ifdef GRADSYNC_HAVE_GLOO
  backend.run_rank = run_rank_on_gloo;
#else
  backend.why_not = GRADSYNC_GLOO_WHY_NOT;
#endif
  return backend;
}

}  // namespace gradsync
