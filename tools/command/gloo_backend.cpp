#include "tools/command/backends.hpp"

#ifdef GRADSYNC_HAVE_GLOO
#include "gradsync/backends/rank/gloo_rank.hpp"
#endif

namespace gradsync {

Backend gloo_backend() {
  Backend backend;
  backend.descriptor = backend_descriptor("gloo");
#ifdef GRADSYNC_HAVE_GLOO
  backend.run_rank = run_gloo_rank;
#else
  backend.why_not = GRADSYNC_GLOO_WHY_NOT;
#endif
  return backend;
}

}  // namespace gradsync
