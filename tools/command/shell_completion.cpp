#include "tools/command/shell_completion.hpp"

#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gradsync {
namespace {

/// `gradsync bench allreduce` without the program's name.
std::string words_of(const CommandTable& command) {
  const auto space = command.path.find(' ');
  return space == std::string::npos ? "" : command.path.substr(space + 1);
}

std::string bash_offer(const CommandOption& option) {
  switch (kind_of_value(option)) {
    case ValueKind::kChoices:
      return fmt::format("words='{}'", fmt::join(option.choices, " "));
    case ValueKind::kFolder:
      return "kind=folder";
    case ValueKind::kFile:
      return "kind=file";
    case ValueKind::kNone:
      break;
  }
  return "kind=none";
}

/// Cases of "COMMAND OPTION": what to offer for the option's value.
std::string bash_value_cases(const CommandTable& program) {
  std::map<std::string, std::vector<std::string>> patterns;  // by what they offer
  for (const CommandTable* command : with_subcommands(program)) {
    for (const CommandOption& option : command->options) {
      if (option.value.empty()) continue;
      for (const std::string& name : option.names) {
        patterns[bash_offer(option)].push_back(fmt::format("'{} {}'", words_of(*command), name));
      }
    }
  }
  std::string cases;
  for (const auto& [offer, options] : patterns) {
    cases += fmt::format("    {}) {} ;;\n", fmt::join(options, " | "), offer);
  }
  return cases;
}

/// Cases of COMMAND: its words, and whether it takes files.
std::string bash_command_cases(const CommandTable& program) {
  std::string cases;
  for (const CommandTable* command : with_subcommands(program)) {
    std::vector<std::string> options, words;
    for (const CommandOption& option : command->options) {
      options.insert(options.end(), option.names.begin(), option.names.end());
    }
    for (const CommandTable& subcommand : command->subcommands) words.push_back(subcommand.name());
    const char* kind = command->positionals.empty() ? "" : " kind=file";
    cases += fmt::format("    '{}') options='{}' words='{}'{} ;;\n", words_of(*command),
                         fmt::join(options, " "), fmt::join(words, " "), kind);
  }
  return cases;
}

}  // namespace

ValueKind kind_of_value(const CommandOption& option) {
  if (!option.choices.empty()) return ValueKind::kChoices;
  if (option.value == "DIR") return ValueKind::kFolder;
  // Positional arguments are all files or run directories.
  const bool is_positional = !option.names.empty() && option.names.front().front() != '-';
  return is_positional || option.value == "FILE" ? ValueKind::kFile : ValueKind::kNone;
}

std::string summary(const std::string& description) {
  std::string line = description.substr(0, description.find('\n'));
  if (!line.empty() && line.back() == ':') line.pop_back();
  return line;
}

std::string bash_completion(const CommandTable& program) {
  std::vector<std::string> paths;
  for (const CommandTable* command : with_subcommands(program)) {
    if (!words_of(*command).empty()) paths.push_back("'" + words_of(*command) + "'");
  }
  return fmt::format(
      R"(# Completion of {0} in bash, printed by `{0} completion bash`.
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command='' kind='' options='' words='' i
  COMPREPLY=()
  # bash splits --option=value at the equals sign.
  if [[ $word == '=' ]]; then
    word=''
  elif [[ $before == '=' ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${{COMP_WORDS[i]}} == '--' ]]; then  # what follows is another program's
      compopt -o default 2>/dev/null
      return
    fi
    case "${{command:+$command }}${{COMP_WORDS[i]}}" in
      {1}) command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command $before" in
{2}  esac
  if [[ -z $kind$words ]]; then
    case $command in
{3}    esac
    if [[ $word == -* || -z $kind$words ]]; then
      words=$options kind=''
    fi
  fi
  case $kind in
    folder)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$word")
      ;;
    file)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
  esac
}}
complete -F _{0} {0}
)",
      program.name(), fmt::join(paths, " | "), bash_value_cases(program),
      bash_command_cases(program));
}

}  // namespace gradsync
