#include <iostream>

#include <fmt/format.h>

#include "tools/backend_registry.hpp"
#include "tools/invocation.hpp"

namespace gradsync {

void add_backends_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("backends", "Say which backends are built in, and why the rest are not");
  command->callback([&invocation] {
    invocation.action = [] {
      for (const Backend& backend : backends()) {
        std::cout << fmt::format("{:<6}{:<5}{}\n", backend.name, backend.available() ? "yes" : "no",
                                 backend.available() ? backend.summary : backend.why_not);
      }
      return 0;
    };
  });
}

}  // namespace gradsync
