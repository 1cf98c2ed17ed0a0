#include "tools/command/command_table.hpp"

#include <sstream>

namespace gradsync {
namespace {

/// CLI11 writes the choices of an option into the name of its type: "TEXT:{text,md,json}".
std::vector<std::string> choices_in(const std::string& type) {
  const auto open = type.find('{');
  const auto close = type.find('}', open);
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

CommandOption option_of(const CLI::Option& option) {
  CommandOption entry;
  entry.description = option.get_description();
  entry.is_required = option.get_required();
  entry.is_repeatable = option.get_items_expected_max() > 1 ||
                        option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (option.get_positional()) {
    entry.names = {option.get_name()};
    entry.value = entry.names.front();
    return entry;
  }
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  if (option.get_items_expected_max() == 0) return entry;
  const std::string type = option.get_type_name();
  entry.choices = choices_in(type);
  entry.value = entry.choices.empty() ? type.substr(0, type.find(':')) : "VALUE";
  return entry;
}

CommandTable table_of(const CLI::App& app, const std::string& parent) {
  CommandTable table;
  table.path = parent.empty() ? app.get_name() : parent + ' ' + app.get_name();
  table.description = app.get_description();
  table.footer = app.get_footer();
  table.runs_a_program = app.get_prefix_command();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? table.positionals : table.options).push_back(option_of(*option));
  }
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (subcommand->get_group().empty()) continue;
    table.subcommands.push_back(table_of(*subcommand, table.path));
  }
  return table;
}

}  // namespace

CommandTable command_table(const CLI::App& app) {
  return table_of(app, "");
}

std::vector<const CommandTable*> with_subcommands(const CommandTable& command) {
  std::vector<const CommandTable*> commands{&command};
  for (const CommandTable& subcommand : command.subcommands) {
    const auto below = with_subcommands(subcommand);
    commands.insert(commands.end(), below.begin(), below.end());
  }
  return commands;
}

}  // namespace gradsync
