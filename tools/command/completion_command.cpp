#include <iostream>
#include <map>
#include <memory>

#include "tools/command/invocation.hpp"
#include "tools/command/shell_completion.hpp"

namespace gradsync {

void add_completion_command(CLI::App& app, Invocation& invocation) {
  static const std::map<std::string, std::string (*)(const CommandTable&)> kShells = {
      {"bash", bash_completion}, {"fish", fish_completion}, {"zsh", zsh_completion}};
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->group("");  // not listed
  command->footer(
      "In bash: source <(gradsync completion bash). An installed gradsync needs no such "
      "line.");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(kShells));
  command->callback([&app, shell, &invocation] {
    invocation.action = [&app, shell] {
      std::cout << kShells.at(*shell)(command_table(app));
      return 0;
    };
  });
}

}  // namespace gradsync
