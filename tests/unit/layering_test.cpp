// The arrows of docs/architecture.md, held by reading every #include: tools -> backends, simulator
// -> engine, and inside the engine no arrow from the reducer to what is built on it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

namespace fs = std::filesystem;

namespace {

struct Include {
  std::string file;  // relative to the root
  std::string target;
  bool quoted = false;
};

std::vector<Include> includes_below(const fs::path& root, const fs::path& folder) {
  static const std::regex pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> found;
  if (!fs::exists(root / folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const auto extension = entry.path().extension();
    if (extension != ".hpp" && extension != ".cpp") continue;
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, pattern)) continue;
      found.push_back({fs::relative(entry.path(), root).string(), match[2], match[1] == "\""});
    }
  }
  return found;
}

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); });
}

// Everything that a file under `folder` includes from the project and that no prefix allows.
std::vector<std::string> forbidden_project_includes(const fs::path& root, const fs::path& folder,
                                                    const std::vector<std::string>& allowed) {
  std::vector<std::string> violations;
  for (const Include& include : includes_below(root, folder)) {
    if (include.quoted && !starts_with_any(include.target, allowed)) {
      violations.push_back(include.file + " includes " + include.target);
    }
  }
  return violations;
}

// Everything that a file under engine/ includes from outside the project, except the standard
// library, POSIX and the libraries that the engine may know. A list of what is allowed catches more
// than a list of what is not: Gloo, NCCL, CUDA and SimGrid are only the ones that we think of
// today.
std::vector<std::string> foreign_engine_includes(const fs::path& root) {
  static const std::regex standard(R"([a-z_]+)");
  static const std::vector<std::string> allowed = {"nlohmann/", "fmt/",      "xxhash.h",
                                                   "cblas.h",   "sys/",      "unistd.h",
                                                   "time.h",    "fnmatch.h", "immintrin.h"};
  std::vector<std::string> violations;
  for (const Include& include : includes_below(root, "engine")) {
    if (include.quoted || std::regex_match(include.target, standard)) continue;
    if (!starts_with_any(include.target, allowed)) {
      violations.push_back(include.file + " includes " + include.target);
    }
  }
  return violations;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

const fs::path kRoot = GRADSYNC_SOURCE_DIR;

}  // namespace

TEST_CASE("the engine includes no header of a backend") {
  REQUIRE(includes_below(kRoot, "engine").size() > 50);  // the scan sees the engine
  const auto foreign = foreign_engine_includes(kRoot);
  INFO(joined(foreign));
  CHECK(foreign.empty());
  const auto upward = forbidden_project_includes(kRoot, "engine", {"engine/"});
  INFO(joined(upward));
  CHECK(upward.empty());
}

TEST_CASE("the reducer knows nothing that is built on it") {
  const auto violations =
      forbidden_project_includes(kRoot, "engine/ddp",
                                 {"engine/ddp/", "engine/comm/", "engine/tensor/",
                                  "engine/autograd/", "engine/core/", "engine/models/model.hpp"});
  INFO(joined(violations));
  CHECK(violations.empty());
}

TEST_CASE("backends, simulator and predict do not know each other or the command") {
  const auto backends = forbidden_project_includes(kRoot, "backends", {"engine/", "backends/"});
  INFO(joined(backends));
  CHECK(backends.empty());
  const auto simulator = forbidden_project_includes(kRoot, "simulator", {"engine/", "simulator/"});
  INFO(joined(simulator));
  CHECK(simulator.empty());
  const auto predict = forbidden_project_includes(kRoot, "predict", {"engine/", "predict/"});
  INFO(joined(predict));
  CHECK(predict.empty());
}

TEST_CASE("the layering test sees an include that must not be there") {
  const gradsync::test::TemporaryDirectory directory;
  fs::create_directories(directory.path() / "engine/ddp");
  const auto write = [&](const char* file, const char* text) {
    std::ofstream(directory.path() / file) << text;
  };
  write("engine/ddp/fine.hpp", "#include <vector>\n#include \"engine/comm/work.hpp\"\n");
  CHECK(foreign_engine_includes(directory.path()).empty());
  CHECK(forbidden_project_includes(directory.path(), "engine", {"engine/"}).empty());

  write("engine/ddp/gloo.cpp", "#include <gloo/allreduce.h>\n");
  write("engine/ddp/nccl.hpp", "  #  include <nccl.h>\n");
  write("engine/ddp/cuda.hpp", "#include <cuda_runtime.h>\n");
  write("engine/ddp/simgrid.cpp", "#include <simgrid/s4u.hpp>\n#include \"simulator/world.hpp\"\n");
  CHECK(foreign_engine_includes(directory.path()).size() == 4);
  CHECK(forbidden_project_includes(directory.path(), "engine", {"engine/"}) ==
        std::vector<std::string>{"engine/ddp/simgrid.cpp includes simulator/world.hpp"});
}
