// The limits of CONTRIBUTING.md: at most 400 lines a file, 60 a function.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

namespace {

namespace fs = std::filesystem;

constexpr std::ptrdiff_t kMostFileLines = 400;
constexpr std::ptrdiff_t kMostFunctionLines = 60;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::ptrdiff_t lines_in(const std::string& text, std::size_t begin, std::size_t end) {
  return std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                    text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
}

/// The end of what begins at `at` and is no code: a comment, a directive, or a literal. `at` itself
/// where code begins.
std::size_t end_of_noise(const std::string& code, std::size_t at) {
  const auto after = [&](const std::string& text, std::size_t from) {
    const std::size_t found = code.find(text, from);
    return found == std::string::npos ? code.size() : found + text.size();
  };
  if (code.compare(at, 2, "//") == 0) return after("\n", at) - 1;
  if (code.compare(at, 2, "/*") == 0) return after("*/", at);
  if (code.compare(at, 2, "R\"") == 0) {
    const std::size_t open = code.find('(', at);
    return after(")" + code.substr(at + 2, open - at - 2) + "\"", open);
  }
  const bool is_separator = at > 0 && std::isxdigit(static_cast<unsigned char>(code[at - 1])) != 0;
  if (code[at] == '"' || (code[at] == '\'' && !is_separator)) {
    std::size_t i = at + 1;
    while (i < code.size() && code[i] != code[at]) i += code[i] == '\\' ? 2 : 1;
    return std::min(i + 1, code.size());
  }
  if (code[at] == '#') {
    std::size_t i = at;
    while (i < code.size() && (code[i] != '\n' || code[i - 1] == '\\')) ++i;
    return i;
  }
  return at;
}

/// C++ without comments, directives and the contents of literals; lines stay lines.
std::string bare(const std::string& code) {
  std::string result;
  for (std::size_t i = 0; i < code.size();) {
    const std::size_t end = end_of_noise(code, i);
    if (end == i) {
      result += code[i++];
    } else {
      result.append(static_cast<std::size_t>(lines_in(code, i, end)), '\n');
      i = end;
    }
  }
  return result;
}

struct Function {
  std::string head;
  std::ptrdiff_t lines = 0;
};

/// The functions at the level of namespaces and classes.
std::vector<Function> functions_of(const std::string& code) {
  static const std::regex scope(R"((^|\s)(namespace|class|struct|union|enum|extern)\b[^()=]*$)");
  const std::string text = bare(code);
  std::vector<Function> found;
  std::vector<bool> is_scope;
  std::size_t begin = 0;  // of the declaration
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool outside =
        std::all_of(is_scope.begin(), is_scope.end(), [](bool inside) { return inside; });
    if (text[i] == '{') {
      const std::string head = text.substr(begin, i - begin);
      is_scope.push_back(outside && std::regex_search(head, scope));
      if (outside && is_scope.back()) begin = i + 1;
    } else if (text[i] == '}' && !is_scope.empty()) {
      is_scope.pop_back();
      const bool ended = std::all_of(is_scope.begin(), is_scope.end(), [](bool s) { return s; });
      if (ended && !outside) {
        const std::size_t first = text.find_first_not_of(" \n\t", begin);
        const std::string head = text.substr(first, text.find('{', first) - first);
        if (head.find(')') != std::string::npos) {
          found.push_back({head, lines_in(text, first, i) + 1});
        }
      }
      if (ended) begin = i + 1;
    } else if (text[i] == ';' && outside) {
      begin = i + 1;
    }
  }
  return found;
}

std::vector<fs::path> sources(const std::regex& name) {
  const fs::path root = gradsync::test::source_dir();
  std::vector<fs::path> files;
  for (const char* folder : {"engine", "testbed", "backends", "simulator", "predict", "tools",
                             "examples", "bench", "tests", "cmake"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (std::regex_match(entry.path().filename().string(), name)) files.push_back(entry.path());
    }
  }
  return files;
}

}  // namespace

TEST_CASE("no file has more than 400 lines") {
  const std::vector<fs::path> files =
      sources(std::regex(R"(.*\.(cpp|hpp|cu|cuh|py|sh|cmake)|CMakeLists\.txt)"));
  CHECK(files.size() > 500);
  for (const fs::path& file : files) {
    INFO(file);
    const std::string text = read(file);
    CHECK(lines_in(text, 0, text.size()) <= kMostFileLines);
  }
}

TEST_CASE("no function has more than 60 lines") {
  std::size_t functions = 0;
  for (const fs::path& file : sources(std::regex(R"(.*\.(cpp|hpp|cu|cuh))"))) {
    for (const Function& function : functions_of(read(file))) {
      ++functions;
      INFO(file << ": " << function.head);
      const bool is_test = function.head.find("TEST_CASE") != std::string::npos;
      CHECK((is_test || function.lines <= kMostFunctionLines));
    }
  }
  CHECK(functions > 2000);
}

TEST_CASE("the count of a function's lines sees what is a function") {
  const std::string code = R"(
#define OPEN {
namespace a {
struct S : Base<int> {
  int inline_one() const { return 1'000; }  // }
  std::vector<int> data{1, 2};
};
enum class E { kOne };
const char* const kText = "}{";
/// Doc.
template <class T>
int longer(T x) {
  if (x) {
    return [] { return '}'; }();
  }
  return 0;
}
}  // namespace a
S::S() : data{3} {
}
)";
  const std::vector<Function> found = functions_of(code);
  REQUIRE(found.size() == 3);
  CHECK(found[0].lines == 1);
  CHECK(found[1].head.find("longer") != std::string::npos);
  CHECK(found[1].lines == 7);
}
