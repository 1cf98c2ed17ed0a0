#include "tools/backends.hpp"

#ifdef GRADSYNC_HAVE_GLOO
#include "backends/gloo/gloo_rank.hpp"
#endif

namespace gradsync {
namespace {

#ifdef GRADSYNC_HAVE_GLOO
RankResult run_rank_on_gloo(const Scenario& scenario, const RankRequest& request) {
  GlooRankOptions options;
  options.run_directory = request.directory;
  options.gather_reports = request.gather_reports;
  options.on_step = request.on_step;
  options.body = request.body;
  GlooRankResult result = run_gloo_rank(scenario, request.environment, options);
  const int exit_status = result.exit_status();
  return {std::move(result.report), std::move(result.all_reports), exit_status};
}
#endif

}  // namespace

Backend gloo_backend() {
  Backend backend;
  backend.name = "gloo";
  backend.summary = "real training: a process a rank, on CPUs, Gloo over TCP";
#ifdef GRADSYNC_HAVE_GLOO
  backend.run_rank = run_rank_on_gloo;
#else
  backend.why_not = GRADSYNC_GLOO_WHY_NOT;
#endif
  return backend;
}

}  // namespace gradsync
