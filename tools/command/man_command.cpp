#include <cstdlib>
#include <ctime>
#include <iostream>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "gradsync/core/version.hpp"
#include "tools/command/command_table.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {
namespace {

/// Running text as roff: `...` in bold, and nothing that roff would take for a request or for
/// typography.
std::string roff(const std::string& text) {
  std::string result;
  bool bold = false, at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) result += "\\&";
    at_line_start = c == '\n';
    switch (c) {
      case '`':
        result += (bold = !bold) ? "\\fB" : "\\fR";
        break;
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      case '"':
        result += "\\(dq";
        break;
      case '~':
        result += "\\(ti";
        break;
      case '^':
        result += "\\(ha";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string bold(const std::string& text) {
  return "\\fB" + roff(text) + "\\fR";
}
std::string italic(const std::string& text) {
  return "\\fI" + roff(text) + "\\fR";
}

/// "SCENARIO" or "[PATH...]".
std::string usage_of(const CommandOption& positional) {
  const std::string name = italic(positional.value) + (positional.is_repeatable ? "..." : "");
  return positional.is_required ? name : "[" + name + "]";
}

std::string usage_of(const CommandTable& command) {
  std::string usage = bold(command.path) + " [" + italic("OPTIONS") + "]";
  for (const CommandOption& positional : command.positionals) usage += " " + usage_of(positional);
  if (!command.subcommands.empty()) usage += " " + italic("SUBCOMMAND");
  if (command.runs_a_program) usage += " " + bold("--") + " " + italic("PROGRAM ARGUMENTS") + "...";
  return usage;
}

std::string tagged(const CommandOption& option) {
  std::string tag;
  for (const std::string& name : option.names) {
    if (!tag.empty()) tag += ", ";
    tag += name.front() == '-' ? bold(name) : italic(name);
  }
  if (!option.choices.empty()) {
    std::string choices;
    for (const std::string& choice : option.choices) {
      choices += (choices.empty() ? "" : "|") + bold(choice);
    }
    tag += " " + choices;
  } else if (!option.value.empty() && option.names.front() != option.value) {
    tag += " " + italic(option.value);
  }
  return ".TP\n" + tag + "\n" + roff(option.description) + "\n";
}

std::string arguments_of(const CommandTable& command) {
  std::string text;
  for (const CommandOption& positional : command.positionals) text += tagged(positional);
  for (const CommandOption& option : command.options) text += tagged(option);
  return text;
}

std::string section(const CommandTable& command) {
  std::string text = fmt::format(".SS {}\n{}\n.PP\n{}\n{}", roff(command.path), usage_of(command),
                                 roff(command.description), arguments_of(command));
  if (!command.footer.empty()) text += ".PP\n" + roff(command.footer) + "\n";
  return text;
}

/// The day of the page: that of a reproducible build, where its environment says which.
std::string day() {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  const std::time_t time = epoch != nullptr ? std::atoll(epoch) : std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(time));
}

/// The page gradsync(1).
std::string manual_page(const CommandTable& program) {
  // "gradsync: what it is"
  const std::string purpose = program.description.substr(program.description.find(": ") + 2);
  std::string page = fmt::format(
      ".\\\" Printed by `{0} man` from the command's own help.\n"
      ".TH GRADSYNC 1 {5} \"{0} {1}\" \"User Commands\"\n"
      ".SH NAME\n{0} \\- {2}\n.SH SYNOPSIS\n{3}\n.SH OPTIONS\n{4}.SH SUBCOMMANDS\n",
      program.name(), version(), roff(purpose), usage_of(program), arguments_of(program), day());
  for (const CommandTable* command : with_subcommands(program)) {
    if (command != &program) page += section(*command);
  }
  page += ".SH EXIT STATUS\n" + roff(program.footer) + "\n";
  return page;
}

}  // namespace

void add_man_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("man", "Print the manual page, for man(1)");
  command->group("");  // not listed
  command->footer("");
  command->callback([&app, &invocation] {
    invocation.action = [&app] {
      std::cout << manual_page(command_table(app));
      return 0;
    };
  });
}

}  // namespace gradsync
