#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// Without white space, and with strings put together that clang-format has broken into several.
std::string squeezed(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  for (std::size_t at = 0; (at = text.find("\"\"", at)) != std::string::npos;) text.erase(at, 2);
  return text;
}

}  // namespace

TEST_CASE("every test that the page on parity with PyTorch names exists") {
  const std::filesystem::path root(gradsync::test::source_dir());
  std::string tests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "tests")) {
    if (entry.path().extension() == ".cpp") tests += squeezed(read(entry.path()));
  }
  const std::string page = read(root / "docs" / "pytorch-parity.md");
  const std::regex quoted("\"([^\"\n]+)\"");
  int names = 0;
  for (std::sregex_iterator match(page.begin(), page.end(), quoted), end; match != end; ++match) {
    const std::string name = (*match)[1];
    INFO("a test named \"" << name << "\"");
    CHECK(tests.find("TEST_CASE(\"" + squeezed(name) + "\"") != std::string::npos);
    ++names;
  }
  CHECK(names > 50);
}
