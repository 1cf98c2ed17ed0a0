#pragma once

#include <string>

#include "tools/command/command_table.hpp"

namespace gradsync {

// Completion scripts for the command: subcommands, options, the choices of a value, files and
// folders.
std::string bash_completion(const CommandTable& program);
std::string zsh_completion(const CommandTable& program);
std::string fish_completion(const CommandTable& program);

/// What a shell offers for the value of an option or for a positional argument.
enum class ValueKind { kNone, kChoices, kFolder, kFile };
ValueKind kind_of_value(const CommandOption& option);

/// The first line of the description, without a final colon.
std::string summary(const std::string& description);

}  // namespace gradsync
