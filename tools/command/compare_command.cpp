#include <iostream>
#include <memory>

#include "gradsync/testbed/result/compare.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/terminal.hpp"

namespace gradsync {
namespace {

constexpr int kDifferent = 1;

int compare(const std::string& a, const std::string& b) {
  const Comparison comparison = compare_runs(a, b);
  const Style style = Style::for_standard_output();
  std::cout << (comparison.equal ? style.good(comparison.summary) : style.bad(comparison.summary))
            << '\n';
  for (const std::string& note : comparison.notes) std::cout << "  note: " << note << '\n';
  return comparison.equal ? 0 : kDifferent;
}

}  // namespace

void add_compare_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("compare", "Compare the collectives and parameter hashes of two runs");
  command->footer("The exit status is 0 if they are equal, and 1 if not. Times are not compared.");
  auto directories = std::make_shared<std::pair<std::string, std::string>>();
  command->add_option("A", directories->first, "Run directory")->required();
  command->add_option("B", directories->second, "Run directory")->required();
  command->callback([directories, &invocation] {
    invocation.action = [directories] { return compare(directories->first, directories->second); };
  });
}

}  // namespace gradsync
