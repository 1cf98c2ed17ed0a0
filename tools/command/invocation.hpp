#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "gradsync/testbed/scenario/registry.hpp"

namespace gradsync {

/// What the command line came to. Each subcommand enters its options in the CLI11 application and,
/// when it is the one that was called, leaves here what is to be done.
struct Invocation {
  /// Returns the exit status (design: 0 completed as expected, 1 an expectation was not met, 2
  /// usage or invalid scenario, 3 backend not available, 4 hang, 5 desync, 6 failed). May throw
  /// gradsync::Error, whose code has an exit status of its own.
  std::function<int()> action;
  /// The kinds that scenarios may name beside those that every scenario knows; never null.
  const Registry* registry = nullptr;
  /// What stood behind "--": a program and its arguments, for `launch`.
  std::vector<std::string> after_dashes;
};

// One function a subcommand, each in a file of its own. Commands named `worker` are what others
// start processes with; they are not listed in the help.
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
void add_worker_command(CLI::App& app, Invocation& invocation);
void add_point_worker_command(CLI::App& app, Invocation& invocation);

}  // namespace gradsync
