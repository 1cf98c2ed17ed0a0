#include "gradsync/backends/store/rendezvous.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gradsync {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

/// Differs between machines, and between boots of a machine.
std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

/// "0-2, 5": a compact list of ranks, readable even with thousands of ranks.
std::string ranges(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    parts.push_back(last == i ? std::to_string(ranks[i])
                              : fmt::format("{}-{}", ranks[i], ranks[last]));
    i = last + 1;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
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

JobStore open_job_store(const RankEnvironment& environment, Seconds timeout) {
  std::unique_ptr<TcpStoreServer> server;
  if (environment.rank == 0 && !environment.agent_store) {
    server = std::make_unique<TcpStoreServer>(TcpStoreServer::Options{
        .bind_address = "", .port = static_cast<std::uint16_t>(environment.master_port)});
  }
  JobStore job = connect_job_store(environment, timeout);
  job.server = std::move(server);
  return job;
}

void join_all_ranks(Store& store, int rank, int world_size, Seconds timeout) {
  const auto start = std::chrono::steady_clock::now();
  const auto left = [&] { return timeout - Seconds(std::chrono::steady_clock::now() - start); };
  const auto key = [](int r) { return fmt::format("joined/{}", r); };

  const std::string size = std::to_string(world_size);
  const std::string size_of_first = store.compare_set("world_size", "", size, left());
  if (size_of_first != size) {
    throw Error(ErrorCode::kUsage,
                fmt::format("rank {}: this rank was started for {} ranks, the first one that came "
                            "for {}; give all ranks the same WORLD_SIZE",
                            rank, size, size_of_first));
  }
  const std::string self = fmt::format("{}, process {}", host_name(), ::getpid());
  const std::string holder = store.compare_set(key(rank), "", self, left());
  if (holder != self) {
    throw Error(ErrorCode::kUsage,
                fmt::format("rank {}: two processes were started as rank {}: {}; and {}. Give each "
                            "process a rank of its own",
                            rank, rank, holder, self));
  }
  // compare_set does not wake waiters on PyTorch's older server; set does.
  store.set(key(rank), self, left());

  std::vector<std::string> keys;
  for (int r = 0; r < world_size; ++r) keys.push_back(key(r));
  try {
    store.wait(keys, left());
  } catch (const StoreTimeout& e) {
    if (e.missing_keys().empty()) throw;
    std::vector<int> came;
    std::vector<int> missing;
    for (int r = 0; r < world_size; ++r) {
      const auto& absent = e.missing_keys();
      const bool here = std::find(absent.begin(), absent.end(), key(r)) == absent.end();
      (here ? came : missing).push_back(r);
    }
    throw Error(
        ErrorCode::kTimeout,
        fmt::format("rank {}: rendezvous timed out after {}: {} of {} ranks came (rank {}), "
                    "missing: rank {}. Were all ranks started, and can they reach the "
                    "store?",
                    rank, format_duration(timeout), came.size(), world_size, ranges(came),
                    ranges(missing)));
  }
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
