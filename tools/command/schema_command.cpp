#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {

void add_schema_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("schema", "Print the scenario's JSON Schema (draft-07)");
  command->footer("");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "Print docs/scenarios.md instead");
  command->callback([markdown, &invocation] {
    invocation.action = [markdown] {
      if (*markdown) {
        std::cout << scenario_reference_markdown();
      } else {
        std::cout << dump_json(scenario_schema(), 2) << '\n';
      }
      return 0;
    };
  });
}

}  // namespace gradsync
