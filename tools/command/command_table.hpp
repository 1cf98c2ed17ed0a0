#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace gradsync {

/// An option or a positional argument, as it is registered with CLI11.
struct CommandOption {
  std::vector<std::string> names;    ///< "-n", "--iterations"; of a positional: "SCENARIO"
  std::string value;                 ///< the name of its value, such as "DIR"; empty for a flag
  std::vector<std::string> choices;  ///< the values that it can have; empty: any
  std::string description;
  bool is_required = false;
  bool is_repeatable = false;
};

/// A command with everything that its help lists. The completion scripts and the manual page are
/// generated from it, so that they cannot differ from the command line that is parsed.
struct CommandTable {
  std::string path;  ///< "gradsync", "gradsync run", "gradsync bench allreduce"
  std::string description;
  std::string footer;
  std::vector<CommandOption> options;
  std::vector<CommandOption> positionals;
  std::vector<CommandTable> subcommands;
  bool runs_a_program = false;  ///< a program and its arguments follow after "--"

  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

/// Hidden subcommands and options are left out.
CommandTable command_table(const CLI::App& app);

/// The command and its subcommands, each before its own, at every depth.
std::vector<const CommandTable*> with_subcommands(const CommandTable& command);

}  // namespace gradsync
