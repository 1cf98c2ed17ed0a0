#include <iostream>
#include <memory>

#include "gradsync/backends/launch/launcher.hpp"
#include "gradsync/core/error.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {
namespace {

/// The program and its arguments: after "--" or, as in torchrun, after the last option.
std::vector<std::string> program_line(const CLI::App& command, const Invocation& invocation) {
  std::vector<std::string> words = command.remaining();
  if (!words.empty() && words.front().starts_with("-")) {
    throw Error(ErrorCode::kUsage, "launch does not know the option " + words.front() +
                                       " (see gradsync launch --help)");
  }
  if (!words.empty() && !invocation.after_dashes.empty()) words.emplace_back("--");
  words.insert(words.end(), invocation.after_dashes.begin(), invocation.after_dashes.end());
  if (words.empty()) {
    throw Error(ErrorCode::kUsage,
                "launch needs a program: gradsync launch --nproc-per-node 4 -- PROGRAM ARGS");
  }
  return words;
}

int launch_program(LaunchOptions options, const std::vector<std::string>& words) {
  options.program = words.front();
  options.args.assign(words.begin() + 1, words.end());
  const LaunchResult result = launch(options);
  if (!result.ok()) std::cerr << "gradsync launch: " << result.describe() << '\n';
  return result.exit_status();
}

}  // namespace

void add_launch_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("launch",
                         "Start any program on N ranks, with torchrun's options and environment:\n"
                         "gradsync launch [OPTIONS] -- PROGRAM ARGS...");
  command->footer(
      "The exit status is 0, or that of the rank that failed first, or 128 plus the number of the "
      "signal that\nended that rank.");
  command->prefix_command();
  auto options = std::make_shared<LaunchOptions>();
  command->add_option("--nproc-per-node,--nproc_per_node", options->nproc_per_node,
                      "Number of ranks on this node");
  command->add_option("--nnodes", options->nnodes, "Number of nodes");
  command->add_option("--node-rank,--node_rank", options->node_rank, "Number of this node, from 0");
  command->add_option("--master-addr,--master_addr", options->master_addr, "Address of node 0");
  command->add_option("--master-port,--master_port", options->master_port,
                      "Port of the store on node 0");
  command->add_flag("--standalone", options->standalone, "One node, with a free port");
  command->callback([command, options, &invocation] {
    invocation.action = [command, options, &invocation] {
      return launch_program(*options, program_line(*command, invocation));
    };
  });
}

}  // namespace gradsync
