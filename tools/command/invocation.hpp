#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace gradsync {

/// The result of parsing the command line. Each subcommand registers its options with the CLI11
/// application and, if it is called, stores its action here.
struct Invocation {
  /// Returns the exit status (0 completed as expected, 1 an expectation was not met, 2 usage or
  /// invalid scenario, 3 backend not available, 4 hang, 5 desync, 6 failed). May throw
  /// gradsync::Error, whose code maps to an exit status.
  std::function<int()> action;
  /// The arguments after "--": a program and its arguments, for `launch`.
  std::vector<std::string> after_dashes;
};

// One function per subcommand, each in its own file. Not listed in the help: `completion` and
// `man`, which packages call, and the `worker` commands, which start child processes.
void add_run_command(CLI::App& app, Invocation& invocation);
void add_check_command(CLI::App& app, Invocation& invocation);
void add_compare_command(CLI::App& app, Invocation& invocation);
void add_diagnose_command(CLI::App& app, Invocation& invocation);
void add_launch_command(CLI::App& app, Invocation& invocation);
void add_backends_command(CLI::App& app, Invocation& invocation);
void add_schema_command(CLI::App& app, Invocation& invocation);
void add_bench_command(CLI::App& app, Invocation& invocation);
void add_fit_command(CLI::App& app, Invocation& invocation);
void add_calibrate_command(CLI::App& app, Invocation& invocation);
void add_validate_command(CLI::App& app, Invocation& invocation);
void add_sweep_command(CLI::App& app, Invocation& invocation);
void add_tune_command(CLI::App& app, Invocation& invocation);
void add_ablate_command(CLI::App& app, Invocation& invocation);
void add_completion_command(CLI::App& app, Invocation& invocation);
void add_man_command(CLI::App& app, Invocation& invocation);
void add_worker_command(CLI::App& app, Invocation& invocation);
void add_point_worker_command(CLI::App& app, Invocation& invocation);

}  // namespace gradsync
