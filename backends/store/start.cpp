// How a job's ranks meet, and what they say if they cannot.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/core/rank_list.hpp"

namespace gradsync {
namespace {

/// What all ranks wait for. Its value is kOpen, or the sentence that says why the job cannot start.
constexpr const char* kGate = "gate";
constexpr std::string_view kOpen = "open";

std::string joined_key(int rank) {
  return fmt::format("joined/{}", rank);
}

std::string this_process() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0;
  return fmt::format("{}, process {}", known ? name.data() : "unknown host", ::getpid());
}

/// Sets the gate unless it is set; returns its value.
std::string set_gate(Store& store, std::string_view value, Seconds timeout) {
  const std::string holds = store.compare_set(kGate, "", value, timeout);
  // compare_set does not wake waiters on PyTorch's older server; set does.
  store.set(kGate, holds, timeout);
  return holds;
}

/// Ends the start of all ranks that still wait. A job that runs already is left alone.
[[noreturn]] void refuse(Store& store, const std::string& sentence, Seconds timeout) {
  set_gate(store, sentence, timeout);
  throw Error(ErrorCode::kMisuse, sentence);
}

std::string two_processes(int rank, const std::string& holder, const std::string& self) {
  return fmt::format(
      "rank {}: two processes were started as rank {}: {}; and {}. Give each process "
      "a rank of its own (RANK)",
      rank, rank, holder, self);
}

/// The world sizes of this rank and of the first that came must be equal.
void compare_world_sizes(Store& store, int rank, int world_size, Seconds timeout) {
  const std::string mine = fmt::format("{} {}", world_size, rank);
  const std::string first = store.compare_set("world_size", "", mine, timeout);
  const std::string size = first.substr(0, first.find(' '));
  if (size == std::to_string(world_size)) return;
  const std::string other = first.substr(std::min(first.find(' ') + 1, first.size()));
  refuse(store,
         fmt::format("ranks {}, {}: rank {} was started for {} ranks, rank {} for {}; give all "
                     "ranks the same WORLD_SIZE",
                     other, rank, rank, world_size, other, size),
         timeout);
}

RanksMissing ranks_missing(Store& store, int rank, int world_size, Seconds timeout) {
  constexpr Seconds kAnswer{5};
  std::vector<int> came;
  std::vector<int> missing;
  for (int r = 0; r < world_size; ++r) {
    (store.check({joined_key(r)}, kAnswer) ? came : missing).push_back(r);
  }
  return {fmt::format("rank {}: rendezvous timed out after {}: {} of {} ranks came ({}), missing: "
                      "{}. Were all ranks started, and can they reach the store?",
                      rank, format_duration(timeout), came.size(), world_size, rank_list(came),
                      rank_list(missing)),
          missing};
}

/// Rank 0 cannot listen: what holds the port?
Error port_refused(const RankEnvironment& environment, const Error& listening) {
  constexpr Seconds kProbe{2};
  const std::string refused = fmt::format("rank {}: {}", environment.rank, listening.what());
  const std::string in_use = std::generic_category().message(EADDRINUSE);
  if (refused.find(in_use) == std::string::npos) return {ErrorCode::kMisuse, refused};
  const std::string port =
      fmt::format("rank {}: this rank serves the job's store, but port {} of this machine",
                  environment.rank, environment.master_port);
  try {
    const JobStore other = connect_job_store(environment, kProbe);
    std::string holder;
    try {
      holder = other.store->get(joined_key(0), kProbe);
    } catch (const StoreTimeout&) {
      return {ErrorCode::kMisuse,
              port +
                  " is held by a store that knows no rank 0 of this job: another job's, or a "
                  "launcher's (then TORCHELASTIC_USE_AGENT_STORE is True). Choose another "
                  "MASTER_PORT"};
    }
    const std::string sentence =
        fmt::format("{} The first holds the store's port {}",
                    two_processes(0, holder, this_process()) + ".", environment.master_port);
    set_gate(*other.store, sentence, kProbe);
    return {ErrorCode::kMisuse, sentence};
  } catch (const Error&) {
    return {ErrorCode::kMisuse,
            port +
                " is in use: a connection was accepted, but what answers is not a store. End "
                "that program, or choose another MASTER_PORT"};
  }
}

/// "x.1" -> 1, if the job's id ends in a restart count.
std::optional<int> restart_count(const std::string& job_id) {
  const auto dot = job_id.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  int count = 0;
  const char* end = job_id.data() + job_id.size();
  const auto parsed = std::from_chars(job_id.data() + dot + 1, end, count);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(count) : std::nullopt;
}

/// Where every rank says in which job it comes, whatever the job's prefix.
std::string arrival_key(int rank) {
  return fmt::format("gradsync/arrived/{}", rank);
}

/// The ranks of `missing` that came as part of another job, and its id.
struct Elsewhere {
  std::vector<int> ranks;
  std::string job_id;
};

Elsewhere find_elsewhere(Store& shared, const std::vector<int>& missing, const std::string& job_id,
                         const std::string& earlier) {
  constexpr Seconds kAnswer{5};
  Elsewhere found;
  for (const int rank : missing) {
    if (!shared.check({arrival_key(rank)}, kAnswer)) continue;
    const std::string id = shared.get(arrival_key(rank), kAnswer);
    // What is left of the restart before this one is no arrival.
    if (id == job_id || id == earlier || (!found.ranks.empty() && id != found.job_id)) continue;
    found.ranks.push_back(rank);
    found.job_id = id;
  }
  return found;
}

std::string came_elsewhere(const Elsewhere& other, const std::vector<int>& here,
                           const std::string& job_id) {
  std::vector<int> odd = other.ranks.size() <= here.size() ? other.ranks : here;
  if (other.ranks.size() == here.size()) odd.insert(odd.end(), here.begin(), here.end());
  std::sort(odd.begin(), odd.end());
  const auto theirs = restart_count(other.job_id);
  const auto ours = restart_count(job_id);
  if (theirs && ours && *theirs != *ours) {
    return fmt::format(
        "{}: {} came with restart count {}, {} with {}, so they wait under different "
        "keys; restart all agents together, so that TORCHELASTIC_RESTART_COUNT is "
        "the same everywhere",
        rank_list(odd), rank_list(other.ranks), *theirs, rank_list(here), *ours);
  }
  return fmt::format(
      "{}: {} came as part of job \"{}\", {} of job \"{}\"; give all ranks the same job "
      "id (TORCHELASTIC_RUN_ID, or start them in one step of the scheduler)",
      rank_list(odd), rank_list(other.ranks), other.job_id, rank_list(here), job_id);
}

}  // namespace

JobStore open_job_store(const RankEnvironment& environment, Seconds timeout) {
  std::unique_ptr<TcpStoreServer> server;
  if (environment.rank == 0 && !environment.agent_store) {
    try {
      server = std::make_unique<TcpStoreServer>(TcpStoreServer::Options{
          .bind_address = "", .port = static_cast<std::uint16_t>(environment.master_port)});
    } catch (const Error& e) {
      throw port_refused(environment, e);
    }
  }
  try {
    JobStore job = connect_job_store(environment, timeout);
    job.server = std::move(server);
    return job;
  } catch (const StoreTimeout& e) {
    throw Error(
        ErrorCode::kMisuse,
        fmt::format("rank {}: {}{}", environment.rank, e.what(),
                    environment.agent_store
                        ? " TORCHELASTIC_USE_AGENT_STORE is True: the launcher must serve "
                          "it, and nobody does; start the ranks with the launcher, or unset "
                          "the variable, so that rank 0 serves it"
                        : ""));
  }
}

void join_all_ranks(Store& store, int rank, int world_size, Seconds timeout) {
  const auto start = std::chrono::steady_clock::now();
  const auto left = [&] { return timeout - Seconds(std::chrono::steady_clock::now() - start); };
  compare_world_sizes(store, rank, world_size, left());
  const std::string self = this_process();
  const std::string holder = store.compare_set(joined_key(rank), "", self, left());
  if (holder != self) refuse(store, two_processes(rank, holder, self), left());
  store.set(joined_key(rank), self, left());
  if (store.add("joined", 1, left()) == world_size) set_gate(store, kOpen, left());
  std::string gate;
  try {
    gate = store.get(kGate, left());
  } catch (const StoreTimeout& e) {
    if (e.missing_keys().empty()) throw;
    throw ranks_missing(store, rank, world_size, timeout);
  }
  if (gate != kOpen) throw Error(ErrorCode::kMisuse, gate);
}

void join_job(const JobStore& job, const RankEnvironment& environment, Seconds timeout) {
  Store& shared = *job.connection;
  const std::string key = arrival_key(environment.rank);
  std::string earlier = shared.compare_set(key, "", environment.job_id, timeout);
  if (earlier == environment.job_id) earlier.clear();
  shared.set(key, environment.job_id, timeout);
  try {
    join_all_ranks(*job.store, environment.rank, environment.world_size, timeout);
  } catch (const RanksMissing& e) {
    const Elsewhere other = find_elsewhere(shared, e.ranks(), environment.job_id, earlier);
    if (other.ranks.empty()) throw;
    std::vector<int> here;
    for (int r = 0; r < environment.world_size; ++r) {
      if (std::find(e.ranks().begin(), e.ranks().end(), r) == e.ranks().end()) here.push_back(r);
    }
    throw Error(ErrorCode::kMisuse, came_elsewhere(other, here, environment.job_id));
  }
}

}  // namespace gradsync
