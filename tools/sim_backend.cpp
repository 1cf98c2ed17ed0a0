#include "tools/backends.hpp"

#ifdef GRADSYNC_HAVE_SIMGRID
#include "simulator/simulation.hpp"
#endif

namespace gradsync {

Backend sim_backend() {
  Backend backend;
  backend.name = "sim";
  backend.summary = "the same engine on simulated ranks and links (SimGrid), in one process";
#ifdef GRADSYNC_HAVE_SIMGRID
  backend.run_all = run_simulated;
#else
  backend.why_not = GRADSYNC_SIMGRID_WHY_NOT;
#endif
  return backend;
}

}  // namespace gradsync
