#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/sweep.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/run_variants.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSweepName = "sweep";

struct SweepOptions {
  VariantRunsOptions runs;
  std::vector<std::string> over;
  std::string format = "text";
};

/// Loads every point before the first one runs, so that an error in the last value is reported at
/// once.
std::vector<Scenario> load_points(const SweepOptions& options,
                                  const std::vector<SweepPoint>& points) {
  std::vector<Scenario> scenarios;
  for (const SweepPoint& point : points) {
    scenarios.push_back(load_changed(options.runs, point.overrides));
  }
  return scenarios;
}

std::string formatted(const Sweep& sweep, const std::string& format) {
  if (format == "csv") return sweep_csv(sweep);
  if (format == "md") return sweep_markdown(sweep);
  if (format == "json") return dump_json(to_json(sweep), 2) + "\n";
  return sweep_text(sweep);
}

int run_sweep(const SweepOptions& options) {
  Sweep sweep;
  for (const std::string& text : options.over) sweep.axes.push_back(parse_sweep_axis(text));
  const std::vector<SweepPoint> points = sweep_points(sweep.axes);
  const std::vector<Scenario> scenarios = load_points(options, points);
  sweep.scenario = scenarios.front().name;
  const fs::path out = results_folder(options.runs, kSweepName, scenarios.front());

  const std::vector<CachedRun> runs = VariantRuns(options.runs, out).run(scenarios);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    sweep.rows.push_back({points[i].values, runs[i].result, runs[i].key});
  }
  for (const char* format : {"text", "csv", "md", "json"}) {
    write_file(out / (std::string("table.") + (std::string(format) == "text" ? "txt" : format)),
               formatted(sweep, format));
  }
  write_file(out / "plot.svg", sweep_svg(sweep));
  std::cout << formatted(sweep, options.format);
  if (options.format == "text") {
    const auto reused =
        std::count_if(runs.begin(), runs.end(), [](const CachedRun& run) { return run.reused; });
    std::cout << fmt::format("{} runs, {} of them done before; tables and plot.svg are in {}\n",
                             runs.size(), reused, out.string());
  }
  const bool all_completed = std::all_of(runs.begin(), runs.end(), [](const CachedRun& run) {
    return run.result.outcome == "completed";
  });
  for (const CachedRun& run : runs) {
    if (!run.result.error.empty()) std::cerr << "gradsync sweep: " << run.result.error << '\n';
  }
  return all_completed ? 0 : 1;
}

}  // namespace

void add_sweep_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      kSweepName, "Run a scenario for all combinations of values of its keys, and compare");
  command->footer(
      "Example: gradsync sweep S.json --over /ranks=8,64 --over "
      "/ddp/bucket_cap_mb=1,5,25\nFinished runs are kept in the folder of --out, and not repeated. "
      "The exit status is 1 if a run did\nnot complete.");
  auto options = std::make_shared<SweepOptions>();
  add_variant_runs_options(*command, kSweepName, options->runs);
  command
      ->add_option("--over", options->over,
                   "A key (JSON pointer, or path with dots) and its values; may be repeated")
      ->type_name("PATH=V1,V2,...")
      ->required()
      ->expected(1)
      ->take_all();
  command->add_option("--format", options->format, "Format of the printed table")
      ->check(CLI::IsMember({"text", "csv", "json", "md"}))
      ->capture_default_str();
  command->callback(
      [options, &invocation] { invocation.action = [options] { return run_sweep(*options); }; });
}

}  // namespace gradsync
