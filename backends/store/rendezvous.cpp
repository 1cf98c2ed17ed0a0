#include "gradsync/backends/store/rendezvous.hpp"

#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace gradsync {
namespace {

/// Differs between machines, and between boots of a machine.
std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

}  // namespace

std::string store_prefix(const RankEnvironment& environment) {
  return "gradsync/" + environment.job_id;
}

JobStore connect_job_store(const RankEnvironment& environment, Seconds timeout) {
  JobStore job;
  job.connection = std::make_shared<TcpStore>(
      environment.master_addr, static_cast<std::uint16_t>(environment.master_port), timeout);
  job.store = std::make_shared<PrefixStore>(store_prefix(environment), job.connection);
  return job;
}

std::chrono::steady_clock::time_point share_clock_origin(Store& store, int rank, Seconds timeout) {
  using std::chrono::steady_clock;
  using std::chrono::system_clock;
  if (rank == 0) {
    const auto origin = steady_clock::now();
    store.set("clock_origin",
              fmt::format("{} {} {}", boot_id(), origin.time_since_epoch().count(),
                          system_clock::now().time_since_epoch().count()),
              timeout);
    return origin;
  }
  std::istringstream text(store.get("clock_origin", timeout));
  std::string boot;
  steady_clock::rep steady = 0;
  system_clock::rep system = 0;
  text >> boot >> steady >> system;
  // On the same machine and boot, use the monotonic clock. Across machines, use the wall clocks,
  // which NTP keeps within milliseconds.
  if (boot == boot_id()) return steady_clock::time_point(steady_clock::duration(steady));
  const system_clock::time_point origin{system_clock::duration(system)};
  return steady_clock::now() -
         std::chrono::duration_cast<steady_clock::duration>(system_clock::now() - origin);
}

}  // namespace gradsync
