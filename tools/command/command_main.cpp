#include "gradsync/command/command_main.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/core/version.hpp"
#include "gradsync/testbed/record/exit_status.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {
namespace {

constexpr int kUsageStatus = 2;

constexpr const char* kFooter =
    "Exit statuses: 0 completed as expected, 1 an expectation was not met, 2 usage or invalid\n"
    "scenario, 3 backend not available, 4 hang, 5 desync, 6 failed.";

int fail(const std::string& program, const std::exception& error, int status) {
  std::cout.flush();
  std::cerr << program << ": " << error.what() << '\n';
  return status;
}

/// Parses `arguments` (without the program's name) into `invocation`. Returns the exit status if
/// there is nothing left to do.
std::optional<int> read_command_line(CLI::App& app, std::vector<std::string> arguments,
                                     Invocation& invocation) {
  // CLI11 passes arguments after "--" to the application instead of the subcommand, so they are
  // split off here.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes != arguments.end()) {
    invocation.after_dashes.assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects a stack
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    const auto called = app.get_subcommands();
    const std::string command = called.empty() ? "" : " " + called.front()->get_name();
    std::cerr << app.get_name() << command << ": " << error.what() << "\nTry: " << app.get_name()
              << command << " --help\n";
    return kUsageStatus;
  }
  if (!invocation.action) {
    std::cerr << app.help();
    return kUsageStatus;
  }
  return std::nullopt;
}

int run_command(const std::string& program, std::vector<std::string> arguments) {
  CLI::App app{
      "gradsync: gradient synchronization of data-parallel training, on real backends or "
      "simulated, from one scenario",
      program};
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("gradsync ") + version());
  app.require_subcommand(0, 1);

  Invocation invocation;
  add_run_command(app, invocation);
  add_check_command(app, invocation);
  add_compare_command(app, invocation);
  add_diagnose_command(app, invocation);
  add_launch_command(app, invocation);
  add_sweep_command(app, invocation);
  add_tune_command(app, invocation);
  add_ablate_command(app, invocation);
  add_bench_command(app, invocation);
  add_fit_command(app, invocation);
  add_calibrate_command(app, invocation);
  add_validate_command(app, invocation);
  add_backends_command(app, invocation);
  add_schema_command(app, invocation);
  add_completion_command(app, invocation);
  add_man_command(app, invocation);
  add_worker_command(app, invocation);
  add_point_worker_command(app, invocation);

  if (const auto status = read_command_line(app, std::move(arguments), invocation)) return *status;
  return invocation.action();
}

}  // namespace

int command_main(int argc, char** argv) {
  const std::string program =
      argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "gradsync";
  try {
    const int status = run_command(program, {argv + std::min(argc, 1), argv + argc});
    std::cout.flush();
    return status;
  } catch (const Error& error) {
    return fail(program, error, exit_status(error.code()));
  } catch (const std::exception& error) {
    return fail(program, error, exit_status(ErrorCode::kInternal));
  }
}

}  // namespace gradsync
