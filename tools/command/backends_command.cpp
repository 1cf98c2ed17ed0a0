#include <iostream>

#include <fmt/format.h>

#include "tools/command/backend_registry.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {

void add_backends_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("backends", "Say which backends are built in, and why the rest are not");
  command->callback([&invocation] {
    invocation.action = [] {
      for (const Backend& backend : backends()) {
        const std::string why_not = backend.why_not_here();
        std::cout << fmt::format("{:<6}{:<5}{}\n", backend.name, why_not.empty() ? "yes" : "no",
                                 why_not.empty() ? backend.summary : why_not);
      }
      return 0;
    };
  });
}

}  // namespace gradsync
