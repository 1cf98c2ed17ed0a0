#include <iostream>

#include <fmt/format.h>

#include "tools/command/backend_registry.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {

void add_backends_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("backends", "List the backends, and say why any of them is missing");
  command->footer("");
  command->callback([&invocation] {
    invocation.action = [] {
      for (const Backend& backend : backends()) {
        const std::string why_not = backend.why_not_here();
        std::cout << fmt::format("{:<6}{:<5}{}\n", backend.descriptor.name,
                                 why_not.empty() ? "yes" : "no",
                                 why_not.empty() ? backend.descriptor.summary : why_not);
      }
      return 0;
    };
  });
}

}  // namespace gradsync
