// docs/library.md shows nothing that is not compiled: its listings are regions of the examples.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

namespace {

std::string read(const std::string& path) {
  std::ifstream file(gradsync::test::source_dir() + "/" + path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The lines between "// [NAME]" and "// [/NAME]", without what all are indented by; the whole file
/// where NAME is empty.
std::string region(const std::string& path, const std::string& name) {
  const std::string text = read(path);
  if (name.empty()) return text;
  std::istringstream lines(text);
  std::string result;
  bool inside = false;
  std::string indent;
  for (std::string line; std::getline(lines, line);) {
    const std::string trimmed = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (trimmed == "// [/" + name + "]") return result;
    if (inside) result += (line.starts_with(indent) ? line.substr(indent.size()) : line) + "\n";
    if (trimmed == "// [" + name + "]") {
      inside = true;
      indent = line.substr(0, line.size() - trimmed.size());
    }
  }
  FAIL(path << " has no region [" << name << "]");
  return {};
}

}  // namespace

TEST_CASE("each listing of docs/library.md is a region of an example") {
  const std::string page = read("docs/library.md");
  const std::regex listing("(<!-- (\\S+)(?: \\[(\\w+)\\])? -->\n)?```(cpp|cmake|json)\n([^`]*)```");
  int listings = 0;
  for (auto found = std::sregex_iterator(page.begin(), page.end(), listing);
       found != std::sregex_iterator(); ++found) {
    const std::smatch& match = *found;
    INFO(match[5]);
    REQUIRE(match[1].matched);  // says where it is from
    CHECK(match[5] == region(match[2], match[3]));
    ++listings;
  }
  CHECK(listings >= 8);
}
