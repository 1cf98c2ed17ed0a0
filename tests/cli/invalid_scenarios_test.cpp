// Every file of tests/data/invalid/ through the command: status 2 and one message with file, JSON
// pointer, what was expected, what was found, and the hint. tests/data/invalid.json says what each
// file's message must contain.
#include <fstream>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;

TEST_CASE("every invalid scenario ends with status 2 and a message that leads to the mistake") {
  const std::string data = gradsync::test::test_data();
  const auto table = nlohmann::ordered_json::parse(std::ifstream(data + "/invalid.json"));
  REQUIRE(table.size() >= 40);
  const TemporaryDirectory directory;
  for (const auto& [name, mistake] : table.items()) {
    const std::string file = data + "/invalid/" + name;
    const CommandResult result = run_command({"run", file}, {directory.path(), {}});
    INFO(result.err);
    CHECK(result.exit_status == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, contains(file));
    for (const char* part : {"pointer", "expected", "found", "hint"}) {
      CHECK_THAT(result.err, contains(mistake.at(part).get<std::string>()));
    }
  }
  CHECK(std::filesystem::is_empty(directory.path()));
}
