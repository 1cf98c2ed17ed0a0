#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/backends/rank/dump_service.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/diagnosis/scenario_fix.hpp"
#include "gradsync/testbed/diagnosis/stragglers.hpp"
#include "gradsync/testbed/result/run_directory.hpp"
#include "gradsync/testbed/result/run_records.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/recorded_run.hpp"
#include "tools/command/run_printer.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

struct DiagnoseOptions {
  std::vector<std::string> paths;
  std::string live;
  std::string job = "none.0";
  Seconds live_timeout{5};
  bool try_fix = false;
  std::string out = "runs/try-fix";
  bool json = false;
};

struct Evidence {
  RunRecords records;
  /// For a live job with ranks that advanced while they were observed: their positions. Such a job
  /// is not stuck, whatever a single snapshot would suggest.
  std::string progress;
};

/// Time between the two snapshots of a live job.
constexpr std::chrono::seconds kLiveWatch{3};

/// The current positions of the ranks that advanced between two snapshots; empty if none did. A
/// rank has advanced if it entered another phase or completed a step, which a stuck rank never
/// does.
std::string describe_progress(const std::vector<RankReport>& before,
                              const std::vector<RankReport>& after) {
  std::int64_t advanced = 0, lowest = 0, highest = 0;
  for (const RankReport& now : after) {
    lowest = now.rank == after.front().rank ? now.steps_completed
                                            : std::min(lowest, now.steps_completed);
    highest = std::max(highest, now.steps_completed);
    for (const RankReport& then : before) {
      const bool moved = now.steps_completed != then.steps_completed ||
                         now.phase_since != then.phase_since || now.state != then.state;
      if (then.rank == now.rank && moved) ++advanced;
    }
  }
  if (advanced == 0) return "";
  return fmt::format(
      "running: {} of {} ranks advanced within {} s, and have completed {} of {} steps. Nothing is "
      "stuck.\n",
      advanced, after.size(), kLiveWatch.count(),
      lowest == highest ? fmt::format("{}", lowest) : fmt::format("{} to {}", lowest, highest),
      after.front().steps_planned);
}

/// Reads a run directory with all its ranks, or some flight files of one run,
/// RUN/flight/rank-N.json.
Evidence read_evidence(const std::vector<std::string>& paths) {
  if (paths.size() == 1 && fs::is_directory(paths.front())) {
    return {read_run_records(paths.front()), ""};
  }
  for (const std::string& path : paths) {
    if (fs::is_directory(path)) {
      throw Error(ErrorCode::kUsage,
                  "diagnose takes one run directory, or the flight files of one run; " + path +
                      " is a directory");
    }
  }
  return {read_flight_files(paths), ""};
}

/// Adds an empty report for each rank that did not answer the dump request, to distinguish it from
/// a rank whose file was not given.
std::vector<RankReport> with_silent_ranks(std::vector<RankReport> reports,
                                          std::int64_t world_size) {
  for (int rank = 0; rank < world_size; ++rank) {
    if (std::ranges::find(reports, rank, &RankReport::rank) != reports.end()) continue;
    RankReport silent;
    silent.rank = rank;
    silent.world_size = static_cast<int>(world_size);
    reports.push_back(std::move(silent));
  }
  return reports;
}

Evidence evidence_of(LiveJob job, std::string progress) {
  Scenario scenario = parse_scenario(job.scenario, "the job's scenario", "");
  auto reports = with_silent_ranks(std::move(job.reports), scenario.ranks);
  return {{std::move(reports), std::move(scenario), {}}, std::move(progress)};
}

/// `options.live` is "HOST:PORT" of a job's store, or a run directory, whose ranks/store contains
/// it.
Evidence ask_live_job(const DiagnoseOptions& options) {
  std::string address = options.live;
  if (fs::is_directory(address)) {
    std::ifstream file(fs::path(address) / "ranks" / "store");
    if (!(file >> address)) {
      throw Error(
          ErrorCode::kUsage,
          options.live +
              " has no file ranks/store with the address of the job's store: is the job running?");
    }
  }
  const auto colon = address.rfind(':');
  RankEnvironment environment;
  environment.job_id = options.job;
  if (colon != std::string::npos) {
    const char* end = address.data() + address.size();
    environment.master_addr = address.substr(0, colon);
    const auto parsed = std::from_chars(address.data() + colon + 1, end, environment.master_port);
    if (parsed.ec != std::errc() || parsed.ptr != end) environment.master_port = 0;
  }
  if (environment.master_port <= 0 || environment.master_port > 65535) {
    throw Error(ErrorCode::kUsage,
                "--live takes HOST:PORT of the job's store, or the directory of "
                "a run; \"" +
                    options.live + "\" is neither");
  }
  const JobStore store = connect_job_store(environment, options.live_timeout);
  LiveJob first = request_dumps(*store.store, options.live_timeout);
  const bool all_run = std::ranges::all_of(
      first.reports, [](const RankReport& report) { return report.state == RankState::kRunning; });
  if (!all_run) return evidence_of(std::move(first), "");
  // Running ranks are never all at the same point: a rank on its way to a collective in which the
  // others wait looks like one that will never arrive. So take two snapshots.
  std::this_thread::sleep_for(kLiveWatch);
  LiveJob second = request_dumps(*store.store, options.live_timeout);
  std::string progress = describe_progress(first.reports, second.reports);
  // A rank that answered once is not silent, only late; keep its first answer.
  for (RankReport& report : first.reports) {
    if (std::ranges::find(second.reports, report.rank, &RankReport::rank) == second.reports.end()) {
      second.reports.push_back(std::move(report));
    }
  }
  return evidence_of(std::move(second), std::move(progress));
}

void print(const DiagnoseOptions& options, const std::optional<Diagnosis>& diagnosis) {
  if (options.json) {
    std::cout << dump_json(diagnosis ? to_json(*diagnosis) : nlohmann::ordered_json(), 2) << '\n';
  } else if (diagnosis) {
    std::cout << format_text(*diagnosis);
  } else {
    std::cout << "clean: every rank finished, and their records show nothing wrong.\n";
  }
}

/// Runs the scenario with the changes suggested by the diagnosis and prints the result.
int try_fix(const DiagnoseOptions& options, const Evidence& evidence, const Diagnosis& diagnosis) {
  const auto fix = fix_scenario(evidence.records.scenario, diagnosis);
  if (!fix) {
    std::cout << "\nno change of the scenario is known to help\n";
    return 1;
  }
  std::cout << "\ntrying   " << fix->description << std::endl;
  const std::string directory = make_run_directory(options.out, fix->scenario);
  const FinishedRun run = run_scenario(fix->scenario, directory, false);
  std::cout << fmt::format("outcome  {} after {}; results in {}\n", to_string(run.result.outcome),
                           count_of(run.result.steps_completed, "step"), directory);
  if (fix->only_without_faults) {
    std::cout
        << "note     all that was changed is that the injected fault is gone, so this shows the "
           "cause and no fix:\n         in a program, "
        << diagnosis.fix << '\n';
  }
  if (run.result.diagnosis) std::cout << '\n' << format_text(*run.result.diagnosis);
  return run.result.exit_status();
}

int diagnose_paths(const DiagnoseOptions& options) {
  if (options.paths.empty() == options.live.empty()) {
    throw Error(ErrorCode::kUsage,
                "diagnose takes the directory of a run, flight files, or --live");
  }
  const Evidence evidence =
      options.live.empty() ? read_evidence(options.paths) : ask_live_job(options);
  const RunRecords& records = evidence.records;
  auto diagnosis = diagnose(records.reports, records.scenario, records.gaps);
  if (!evidence.progress.empty() && diagnosis && diagnosis->verdict != "silent divergence") {
    diagnosis.reset();
  }
  if (diagnosis || evidence.progress.empty() || options.json) print(options, diagnosis);
  if (!options.json) std::cout << evidence.progress;
  if (!options.json) {
    std::cout << diagnosis::describe_arrivals(records.reports, records.scenario);
  }
  if (options.try_fix && diagnosis) return try_fix(options, evidence, *diagnosis);
  return 0;
}

}  // namespace

void add_diagnose_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "diagnose", "Explain why a run did not complete, or what is wrong with it");
  command->footer(
      "The exit status is 0 if the records could be read, whatever the diagnosis says, and 2 if "
      "not. With\n--try-fix it is that of the run with the fix (0 completed, 4 hang, 5 desync, 6 "
      "failed), or 1 if no\nfix is known.");
  auto options = std::make_shared<DiagnoseOptions>();
  command->add_option("PATH", options->paths, "A run directory, or flight files of one run");
  command
      ->add_option("--live", options->live,
                   "A running job: HOST:PORT of its store, or its run directory")
      ->type_name("STORE|DIR");
  command
      ->add_option("--job", options->job, "The job's id in the store, with the number of restarts")
      ->capture_default_str();
  command->add_flag("--try-fix", options->try_fix,
                    "Also run the scenario with the suggested fix, and show the outcome");
  command->add_option("--out", options->out, "Where to write the run of --try-fix")
      ->capture_default_str()
      ->type_name("DIR");
  command->add_flag("--json", options->json, "Print the diagnosis as JSON (null if there is none)");
  command->callback([options, &invocation] {
    invocation.action = [options] { return diagnose_paths(*options); };
  });
}

}  // namespace gradsync
