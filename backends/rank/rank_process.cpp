#include "gradsync/backends/rank/rank_process.hpp"

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include <nlohmann/json.hpp>

#include "gradsync/backends/rank/dump_service.hpp"
#include "gradsync/backends/rank/rank_reports.hpp"
#include "gradsync/comm/comm_error.hpp"
#include "gradsync/core/wall_clock.hpp"
#include "gradsync/testbed/faults/rendezvous_fault.hpp"
#include "gradsync/testbed/record/exit_status.hpp"

namespace gradsync {
namespace {

/// Timeout of a rank's last store calls, whether its work succeeded or not.
constexpr Seconds kFarewell{5};

Bytes peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<Bytes>(usage.ru_maxrss) * 1024;  // Linux reports KiB
}

/// Fault injection: exits without telling anybody.
void end_this_process(const ProcessEnd& end) {
  if (end.signal != 0) {
    ::raise(end.signal);
  } else {
    std::_Exit(end.exit_code);
  }
}

/// Writes the address of the job's store for `gradsync diagnose --live`.
void note_store_address(const std::string& run_directory, const RankEnvironment& environment) {
  const auto folder = std::filesystem::path(run_directory) / "ranks";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "store") << environment.master_addr << ':' << environment.master_port
                                  << '\n';
}

/// For a rank that never reaches the rendezvous or never finishes its clean-up; the launcher ends
/// the process.
void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

int RankProcessResult::exit_status() const {
  constexpr int kTerminatedStatus = 143;  // 128 + SIGTERM
  if (terminated) return kTerminatedStatus;
  return report.error_code ? gradsync::exit_status(*report.error_code) : 0;
}

std::chrono::steady_clock::time_point RankProcess::clock_origin() const {
  return share_clock_origin(*job_.store, environment_.rank, scenario_.timeout);
}

void RankProcess::run(ProcessGroup& group, const Abort& abort, Clock& clock, Device& device) {
  std::mutex report_mutex;
  const auto snapshot = [&] {
    const std::lock_guard lock(report_mutex);
    RankReport copy = report_;
    copy.flight = group.flight_recorder().snapshot();
    copy.peak_rss_bytes = peak_rss_bytes();
    return copy;
  };
  // On SIGTERM the rank publishes the failure and then fails in its next collective, which leaves a
  // complete report. If it does not get there, its last report is what other threads can see.
  termination_.set([&] { abort(ErrorCode::kRankDied, "was ended by signal 15 (Terminated)"); },
                   [&] {
                     if (options_.run_directory.empty()) return;
                     write_report_file(options_.run_directory, snapshot());
                   });
  const std::unique_ptr<TerminationWatch, void (*)(TerminationWatch*)> clear_at_end(
      &termination_, [](TerminationWatch* watch) { watch->clear(); });
  if (environment_.rank == 0) {
    publish_scenario(*job_.store, to_json(scenario_).dump(), scenario_.timeout);
    if (!options_.run_directory.empty()) note_store_address(options_.run_directory, environment_);
  }
  const DumpService dumps(environment_, scenario_.timeout, options_.run_directory, snapshot);
  RankRuntime runtime;
  runtime.report_mutex = &report_mutex;
  runtime.end_process = end_this_process;
  runtime.block = sleep_for_ever;
  runtime.before_clean_up = [&] {
    if (!options_.run_directory.empty()) write_report_file(options_.run_directory, snapshot());
  };
  runtime.process_group = &group;
  runtime.clock = &clock;
  runtime.device = &device;
  try {
    options_.body.load(scenario_, options_.observer)(runtime, report_);
  } catch (const CommError&) {
    throw;  // the other ranks learn it from the group
  } catch (const Error& e) {
    abort(e.code(), e.what());
    throw;
  } catch (const std::exception& e) {
    abort(ErrorCode::kInternal, e.what());
    throw;
  }
}

RankProcessResult run_rank_process(const Scenario& scenario, const RankEnvironment& environment,
                                   const RankProcessOptions& options,
                                   const std::function<void(RankProcess&)>& backend) {
  RankProcessResult result;
  result.report.rank = environment.rank;
  TerminationWatch termination;
  JobStore job;
  // Terminated before there is a group: reports itself as a rank that has not joined.
  termination.set(nullptr, [&] {
    if (options.run_directory.empty()) return;
    RankReport not_joined;
    not_joined.rank = environment.rank;
    not_joined.world_size = environment.world_size;
    write_report_file(options.run_directory, not_joined);
  });
  try {
    WallClock clock(std::chrono::steady_clock::now());
    come_to_rendezvous(scenario.faults, scenario.imperfections, environment.rank, clock,
                       sleep_for_ever);
    job = open_job_store(environment, scenario.timeout);
    join_job(job, environment, scenario.timeout);
    RankProcess process(scenario, environment, options, job, termination, result.report);
    backend(process);
  } catch (const std::exception& e) {
    note_error(result.report, e);
  }
  result.report.clean_up_since.reset();
  result.terminated = termination.terminated();
  result.report.peak_rss_bytes = peak_rss_bytes();
  if (!options.run_directory.empty()) write_report_file(options.run_directory, result.report);
  if (!job.store) {
    // The start failed, and the verdict is that of this rank alone.
    if (options.gather_reports && environment.rank == 0) {
      result.all_reports = only_report(result.report, environment.world_size);
    }
    return result;
  }
  try {
    if (options.gather_reports) {
      publish_report(*job.store, result.report, kFarewell);
      if (environment.rank == 0) {
        result.all_reports = gather_reports(*job.store, environment.world_size, kFarewell);
      }
    }
  } catch (const Error&) {
    // The store's host is gone, as the report already says; the file has been written.
  }
  job.connection->close();
  if (job.server) job.server->wait_until_idle(kFarewell);
  return result;
}

}  // namespace gradsync
