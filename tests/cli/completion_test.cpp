// The completion scripts and the manual page, compared with what each subcommand's --help lists.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;

namespace {

using Words = std::vector<std::string>;

/// A subcommand as its help presents it.
struct Listed {
  Words path;  // {"bench", "allreduce"}; empty: gradsync itself
  Words options;
  Words subcommands;
};

Words matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  Words found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

/// What the help lists, of `path` and every subcommand below.
std::vector<Listed> listed(const Words& path = {}) {
  Words arguments = path;
  arguments.emplace_back("--help");
  const std::string help = run_command(arguments).out;
  Listed command{path, {}, {}};
  const auto subcommands = help.find("\nSubcommands:\n");
  const std::string options = help.substr(0, subcommands);
  for (const std::string& names : matches(options, "\n  (-[^ ]+)")) {
    for (const std::string& name : matches(names, "([^,]+)")) command.options.push_back(name);
  }
  if (subcommands != std::string::npos) {
    const auto end = help.find("\n\n", subcommands);
    command.subcommands = matches(help.substr(subcommands, end - subcommands), "\n  ([a-z-]+) ");
  }
  std::vector<Listed> commands{command};
  for (const std::string& subcommand : command.subcommands) {
    Words below = path;
    below.push_back(subcommand);
    const auto more = listed(below);
    commands.insert(commands.end(), more.begin(), more.end());
  }
  return commands;
}

CommandResult run_shell(const Words& arguments, const std::string& directory = "") {
  CommandOptions options;
  options.program = "/usr/bin/env";
  options.directory = directory;
  return run_command(arguments, options);
}

/// What bash offers after `line`, whose last word is being typed.
Words completed(const Words& line, const std::string& directory = "") {
  std::string script =
      "source <(\"$0\" completion bash); COMP_WORDS=(\"$@\")\n"
      "COMP_CWORD=$(( $# - 1 )); _gradsync; printf '%s\\n' \"${COMPREPLY[@]}\"";
  Words arguments{"bash", "-c", script, command_path(), "gradsync"};
  arguments.insert(arguments.end(), line.begin(), line.end());
  const CommandResult result = run_shell(arguments, directory);
  CHECK(result.err.empty());
  std::istringstream lines(result.out);
  Words words;
  for (std::string word; std::getline(lines, word);) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

bool is_installed(const std::string& program) {
  return run_shell({"sh", "-c", "command -v " + program + " >/dev/null"}).exit_status == 0;
}

std::string write_printed(const Words& arguments, const std::filesystem::path& file) {
  std::ofstream(file) << run_command(arguments).out;
  return file.string();
}

}  // namespace

TEST_CASE("bash completes every subcommand and option that the help lists") {
  const auto commands = listed();
  REQUIRE(commands.size() > 14);
  for (const Listed& command : commands) {
    Words line = command.path;
    INFO((line.empty() ? "gradsync" : line.back()));
    line.emplace_back("-");
    Words expected = command.options;
    Words offered = completed(line);
    std::sort(expected.begin(), expected.end());
    std::sort(offered.begin(), offered.end());
    CHECK(offered == expected);
    line.back() = "";
    if (!command.subcommands.empty()) CHECK(completed(line) == command.subcommands);
  }
}

TEST_CASE("bash completes values: choices, files and folders, and nothing where it cannot know") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "runs");
  std::ofstream(directory.path() / "mine.json") << "{}";
  const auto offered = [&](const Words& line) { return completed(line, directory.path()); };
  CHECK(offered({"run", "--backend", ""}) == Words{"gloo", "nccl", "sim"});
  CHECK(offered({"run", "--backend", "=", "s"}) == Words{"sim"});
  CHECK(offered({"run", "--backend", "="}) == Words{"gloo", "nccl", "sim"});
  CHECK(offered({"fit", "log.txt", "--algo", "nvls"}) == Words{"nvls", "nvls_tree"});
  CHECK(offered({"run", "--out", ""}) == Words{"runs"});
  CHECK(offered({"run", "mi"}) == Words{"mine.json"});
  CHECK(offered({"bench", "allreduce", "--cluster", "m"}) == Words{"mine.json"});
  CHECK(offered({"run", "--ranks", ""}).empty());
  CHECK(offered({"launch", "--", "ls", "--"}).empty());
  CHECK(offered({"bench", "allreduce", "--min"}) == Words{"--min-bytes"});
  CHECK(offered({"frobnicate", "no"}).empty());
}

TEST_CASE("the manual page names every subcommand and option that the help lists") {
  const std::string page = run_command({"man"}).out;
  for (const Listed& command : listed()) {
    std::string title = "gradsync";
    for (const std::string& word : command.path) title += " " + word;
    INFO(title);
    const std::string heading = command.path.empty() ? ".SH OPTIONS\n" : ".SS " + title + "\n";
    const auto begin = page.find(heading);
    REQUIRE(begin != std::string::npos);
    const auto end = page.find("\n.S", begin + heading.size());
    const std::string section = page.substr(begin, end - begin);
    for (const std::string& option : command.options) {
      CHECK_THAT(section,
                 contains("\\fB" + std::regex_replace(option, std::regex("-"), "\\-") + "\\fR"));
    }
  }
  // SOURCE_DATE_EPOCH makes two builds equal.
  CommandOptions reproducible;
  reproducible.env = {{"SOURCE_DATE_EPOCH", "86400"}};
  CHECK_THAT(run_command({"man"}, reproducible).out, contains(".TH GRADSYNC 1 1970-01-02 "));
}

TEST_CASE("man reads the manual page without a warning") {
  const TemporaryDirectory directory;
  const std::string page = write_printed({"man"}, directory.path() / "gradsync.1");
  bool checked = false;
  for (const Words& reader :
       {Words{"mandoc", "-Tlint", "-Wwarning", page}, Words{"groff", "-ww", "-z", "-man", page},
        Words{"man", "--warnings", "-l", page}}) {
    if (!is_installed(reader.front())) continue;
    checked = true;
    const CommandResult result = run_shell(reader);
    INFO(reader.front());
    CHECK(result.err.empty());
    CHECK(result.exit_status == 0);
    if (reader.front() != "man") CHECK(result.out.empty());
  }
  if (!checked) std::cout << "SKIPPED: needs man, groff or mandoc" << std::endl;
}

TEST_CASE("zsh and fish read their completion scripts") {
  const TemporaryDirectory directory;
  bool checked = false;
  for (const std::string shell : {"zsh", "fish"}) {
    const CommandResult printed = run_command({"completion", shell});
    CHECK(printed.exit_status == 0);
    for (const std::string name : {"allreduce", "calibrate", "min-bytes", "nvls_tree"}) {
      CHECK_THAT(printed.out, contains(name));
    }
    if (!is_installed(shell)) continue;
    checked = true;
    const std::string script =
        write_printed({"completion", shell}, directory.path() / ("gradsync." + shell));
    const CommandResult result = run_shell({shell, "-n", script});
    CHECK(result.exit_status == 0);
    CHECK(result.err.empty());
  }
  if (!checked) std::cout << "SKIPPED: needs zsh or fish" << std::endl;
}

TEST_CASE("a shell without completion is refused") {
  const CommandResult result = run_command({"completion", "tcsh"});
  CHECK(result.exit_status == 2);
  CHECK_THAT(result.err, contains("tcsh"));
}
