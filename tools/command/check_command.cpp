#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/result/expectations.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/recorded_run.hpp"
#include "tools/command/run_printer.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/shipped_files.hpp"
#include "tools/command/terminal.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

struct CheckOptions {
  std::vector<std::string> paths;
  ScenarioOptions scenario;
  std::optional<std::int64_t> repeat;
  std::string out = "runs/check";
};

enum class Verdict { kMet, kNotMet, kInvalid, kNotAvailable, kElsewhere };

/// A folder stands for the scenarios directly inside it, by name.
std::vector<std::string> scenario_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_regular_file() && entry.path().extension() == ".json") {
        inside.push_back(entry.path());
      }
    }
    if (inside.empty()) {
      throw Error(ErrorCode::kUsage, path + " holds no scenario (a file *.json)");
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

/// Runs the scenario as often as its `repeat` says, writes every run, and checks them against
/// `expect`. A scenario without an expected outcome must complete.
std::vector<ExpectationResult> run_and_compare(Scenario scenario, const std::string& out) {
  if (!scenario.expect.outcome && !scenario.expect.exit_status) {
    scenario.expect.outcome = to_string(Outcome::kCompleted);
  }
  std::vector<RunResult> results;
  std::vector<RankReport> first_reports;
  const std::string base =
      fmt::format("{}/{}-{}-{}", out, scenario.name, scenario.backend, scenario.ranks);
  for (std::int64_t k = 0; k < scenario.expect.repeat; ++k) {
    const std::string directory = k == 0 ? base : fmt::format("{}-{}", base, k + 1);
    FinishedRun run = run_scenario(scenario, make_run_directory(directory, scenario), false);
    if (k == 0) first_reports = std::move(run.outcome.reports);
    results.push_back(std::move(run.result));
  }
  return check_expectations(scenario, results, first_reports);
}

/// Whether the backend on the command line does not support a fault or network imperfection of the
/// scenario.
bool is_of_another_world(const ConfigError& error) {
  const std::string& pointer = error.details().pointer;
  const std::string& expected = error.details().expected;
  if (pointer.starts_with("/imperfections/")) return expected.starts_with("nothing of the network");
  return pointer.starts_with("/faults/") && pointer.ends_with("/kind") &&
         expected.starts_with("a fault that the backend can do");
}

Verdict check_file(const std::string& file, const CheckOptions& options, const Style& style) {
  const auto print = [&](const std::string& verdict, const std::string& text) {
    std::cout << fmt::format("{} {}{}", verdict, file, text) << std::endl;
  };
  try {
    Scenario scenario = load_scenario(file, options.scenario);
    if (options.repeat) scenario.expect.repeat = *options.repeat;
    require_backend(scenario.backend);
    const auto expectations = run_and_compare(scenario, options.out);
    const bool met = all_met(expectations);
    print(met ? style.good("ok     ") : style.bad("not met"),
          fmt::format(": {} on {}, {} in {}", scenario.backend, count_of(scenario.ranks, "rank"),
                      count_of(static_cast<std::int64_t>(expectations.size()), "expectation"),
                      count_of(scenario.expect.repeat, "run")));
    for (const ExpectationResult& line : expectations) {
      if (line.ok) continue;
      std::cout << fmt::format("        {}: expected {}, found {}\n", line.what, line.expected,
                               line.found);
    }
    return met ? Verdict::kMet : Verdict::kNotMet;
  } catch (const ConfigError& error) {
    if (options.scenario.backend && is_of_another_world(error)) {
      print(style.dim("no run "), fmt::format("\n        {}", error.what()));
      return Verdict::kElsewhere;
    }
    print(style.bad("invalid"), fmt::format("\n        {}", error.what()));
    return Verdict::kInvalid;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBackendUnavailable) throw;
    print(style.bad("no run "), fmt::format("\n        {}", error.what()));
    return Verdict::kNotAvailable;
  }
}

int check(const CheckOptions& options) {
  const Style style = Style::for_standard_output();
  std::vector<Verdict> verdicts;
  for (const std::string& file : scenario_files(options.paths)) {
    verdicts.push_back(check_file(file, options, style));
  }
  const auto count = [&](Verdict verdict) {
    return std::count(verdicts.begin(), verdicts.end(), verdict);
  };
  const auto elsewhere = count(Verdict::kElsewhere);
  std::cout << fmt::format(
      "{}: {} as expected, {} not, {} invalid, {} without their backend{}; runs are in {}\n",
      count_of(static_cast<std::int64_t>(verdicts.size()), "scenario"), count(Verdict::kMet),
      count(Verdict::kNotMet), count(Verdict::kInvalid), count(Verdict::kNotAvailable),
      elsewhere == 0 ? std::string() : fmt::format(", {} impossible on this backend", elsewhere),
      options.out);
  if (count(Verdict::kInvalid) > 0) return 2;
  if (count(Verdict::kNotMet) > 0) return 1;
  if (count(Verdict::kNotAvailable) > 0) return 3;
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("check", "Run scenarios, and compare each with its own `expect`");
  command->footer(
      "The exit status is 0 if every scenario ended as it expects, 2 if one is invalid, otherwise "
      "1 if one\nended differently, otherwise 3 if the backend of one is missing here.");
  auto options = std::make_shared<CheckOptions>();
  command->add_option("PATH", options->paths, "Scenarios, or folders of them")
      ->required()
      ->transform(shipped_path);
  add_scenario_options(*command, options->scenario);
  command
      ->add_option("--repeat", options->repeat,
                   "Run each scenario K times; the parameter hashes must be equal")
      ->type_name("K")
      ->check(CLI::PositiveNumber);
  command->add_option("--out", options->out, "Where to write the run directories")
      ->capture_default_str()
      ->type_name("DIR");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return check(*options); }; });
}

}  // namespace gradsync
