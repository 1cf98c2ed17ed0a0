// Completion in zsh and fish: both have tables of options, with descriptions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/command/shell_completion.hpp"

namespace gradsync {
namespace {

/// `text` with a backslash before each of `special`.
std::string escaped(const std::string& text, const std::string& special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

/// In single quotes, for zsh.
std::string zsh_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string zsh_action(const CommandOption& option) {
  switch (kind_of_value(option)) {
    case ValueKind::kChoices:
      return fmt::format("({})", fmt::join(option.choices, " "));
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kNone:
      break;
  }
  return " ";
}

std::string zsh_option(const CommandOption& option, const std::string& name) {
  const bool is_long = name.starts_with("--");
  std::string spec = option.is_repeatable ? "*" + name : name;
  if (!option.value.empty()) spec += is_long ? "=" : "+";
  spec += "[" + escaped(summary(option.description), "[]\\") + "]";
  if (!option.value.empty()) {
    spec += ":" + escaped(option.value, ":\\") + ":" + zsh_action(option);
  }
  return zsh_quoted(spec);
}

std::string zsh_function_name(const CommandTable& command) {
  std::string name = "_" + command.path;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
}

std::string zsh_function(const CommandTable& command) {
  std::vector<std::string> specs;
  for (const CommandOption& option : command.options) {
    for (const std::string& name : option.names) specs.push_back(zsh_option(option, name));
  }
  for (const CommandOption& positional : command.positionals) {
    specs.push_back(
        zsh_quoted((positional.is_repeatable ? "*:" : ":") + positional.value + ":_files"));
  }
  if (command.runs_a_program) specs.emplace_back("'*::program:_normal'");
  if (command.subcommands.empty()) {
    return fmt::format("{}() {{\n  _arguments -s \\\n    {}\n}}\n", zsh_function_name(command),
                       fmt::join(specs, " \\\n    "));
  }
  std::string described, cases;
  for (const CommandTable& subcommand : command.subcommands) {
    described +=
        "        " +
        zsh_quoted(escaped(subcommand.name() + ":" + summary(subcommand.description), "\\")) + "\n";
    cases += fmt::format("        {}) {} ;;\n", subcommand.name(), zsh_function_name(subcommand));
  }
  return fmt::format(R"({}() {{
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \
    {} \
    '1:command:->command' '*::arguments:->arguments'
  case $state in
    command)
      local -a commands
      commands=(
{}      )
      _describe command commands
      ;;
    arguments)
      case $line[1] in
{}      esac
      ;;
  esac
}}
)",
                     zsh_function_name(command), fmt::join(specs, " \\\n    "), described, cases);
}

std::string fish_quoted(const std::string& text) {
  return "'" + escaped(text, "'\\") + "'";
}

/// When fish offers what belongs to `command`: its words have been typed, those of a subcommand
/// of its own have not.
std::string fish_condition(const CommandTable& command) {
  if (command.path.find(' ') == std::string::npos) return "__fish_use_subcommand";
  std::string condition = "__fish_seen_subcommand_from " + command.name();
  if (!command.subcommands.empty()) {
    condition += "; and not __fish_seen_subcommand_from";
    for (const CommandTable& subcommand : command.subcommands) condition += " " + subcommand.name();
  }
  return condition;
}

std::string fish_value(const CommandOption& option) {
  switch (kind_of_value(option)) {
    case ValueKind::kChoices:
      return fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kNone:
      break;
  }
  return option.value.empty() ? "" : " -x";
}

std::string fish_lines(const std::string& program, const CommandTable& command) {
  const std::string line =
      fmt::format("complete -c {} -n {}", program, fish_quoted(fish_condition(command)));
  std::string lines;
  if (command.positionals.empty() && !command.runs_a_program) lines += line + " -f\n";
  for (const CommandTable& subcommand : command.subcommands) {
    lines += fmt::format("{} -a {} -d {}\n", line, subcommand.name(),
                         fish_quoted(summary(subcommand.description)));
  }
  for (const CommandOption& option : command.options) {
    lines += line;
    for (const std::string& name : option.names) {
      lines += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    lines += fish_value(option) + " -d " + fish_quoted(summary(option.description)) + "\n";
  }
  return lines;
}

}  // namespace

std::string zsh_completion(const CommandTable& program) {
  const std::string name = program.name();
  std::string script = fmt::format(
      "#compdef {0}\n# Completion of {0} in zsh, printed by `{0} completion zsh`.\n", name);
  for (const CommandTable* command : with_subcommands(program)) script += zsh_function(*command);
  // Found in $fpath, the file is the function's body; sourced, it must register the function.
  return script + fmt::format(
                      "if [[ $funcstack[1] == _{0} ]]; then\n  _{0} \"$@\"\nelse\n"
                      "  compdef _{0} {0}\nfi\n",
                      name);
}

std::string fish_completion(const CommandTable& program) {
  std::string script = fmt::format(
      "# Completion of {0} in fish, printed by `{0} completion fish`.\n", program.name());
  for (const CommandTable* command : with_subcommands(program)) {
    script += fish_lines(program.name(), *command);
  }
  return script;
}

}  // namespace gradsync
