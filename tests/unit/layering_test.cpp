// The arrows of docs/architecture.md, held by reading every #include: tools -> predict, simulator,
// backends -> testbed -> engine, the rooms of each in a fixed order, and no cycle between folders.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary_directory.hpp"

namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;

const fs::path kRoot = gradsync::test::source_dir();
const Names kTops = {"engine", "testbed", "backends", "simulator", "predict", "tools"};

/// What a folder and all below it may include of the project: folders whose prefix matches, and
/// itself. The most specific row counts.
const std::map<std::string, Names> kArrows = {
    {"engine/core", {}},
    {"engine/tensor", {"engine/core"}},
    {"engine/autograd", {"engine/core", "engine/tensor"}},
    {"engine/comm", {"engine/core", "engine/tensor"}},
    {"engine/models", {"engine/core", "engine/tensor", "engine/autograd", "engine/data"}},
    {"engine/data", {"engine/core", "engine/tensor"}},
    {"engine/optim", {"engine/core", "engine/tensor", "engine/autograd"}},
    {"engine/ddp", {"engine/core", "engine/tensor", "engine/autograd", "engine/comm"}},
    {"testbed/scenario", {"engine"}},
    {"testbed/loop", {"engine"}},
    {"testbed/faults", {"engine", "testbed/scenario", "testbed/loop"}},
    {"testbed/record", {"engine", "testbed/scenario", "testbed/loop"}},
    {"testbed/rank",
     {"engine", "testbed/scenario", "testbed/loop", "testbed/faults", "testbed/record"}},
    {"testbed/diagnosis", {"engine", "testbed/scenario", "testbed/record"}},
    {"testbed/result", {"engine", "testbed/scenario", "testbed/record", "testbed/diagnosis"}},
    {"backends/store", {"engine"}},
    {"backends/launch", {"engine", "backends/store"}},
    {"backends/gloo", {"engine", "backends/store"}},
    {"backends/cuda", {"engine"}},
    {"backends/nccl", {"engine", "backends/cuda", "backends/store"}},
    {"backends/rank", {"engine", "testbed", "backends"}},
    {"simulator/kernel", {"engine", "testbed"}},
    {"simulator/platform", {"engine", "testbed", "simulator/kernel"}},
    {"simulator/plan", {"engine", "testbed", "simulator/platform"}},
    {"simulator/collective",
     {"engine", "testbed", "simulator/kernel", "simulator/platform", "simulator/plan"}},
    {"simulator/world",
     {"engine", "testbed", "simulator/kernel", "simulator/platform", "simulator/collective"}},
    {"simulator", {"engine", "testbed"}},
    {"predict", {"engine", "testbed"}},
    {"tools", {"engine", "testbed", "backends", "simulator", "predict"}},
};

struct Include {
  std::string file;           // relative to the root
  std::string folder;         // of the file
  std::string target;         // as it is spelled
  std::string target_folder;  // in the tree; empty for a header from outside
};

/// Headers are spelled as they are once installed: gradsync/ddp/reducer.hpp is
/// engine/ddp/reducer.hpp.
std::string folder_of_header(const fs::path& root, const std::string& spelled) {
  const std::string prefix = "gradsync/";
  if (!spelled.starts_with(prefix)) return fs::path(spelled).parent_path().string();
  const std::string folder = fs::path(spelled.substr(prefix.size())).parent_path().string();
  const std::string top = folder.substr(0, folder.find('/'));
  const bool in_engine = fs::exists(root / "engine" / top) || top == "core" || top == "ddp";
  if (top == "command") return "tools/" + folder;
  return in_engine ? "engine/" + folder : folder;
}

bool is_source(const fs::path& file) {
  static const std::set<std::string> extensions = {".hpp", ".cpp", ".cu", ".cuh"};
  return extensions.contains(file.extension().string());
}

std::vector<Include> includes_below(const fs::path& root, const std::string& top) {
  static const std::regex pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> found;
  if (!fs::exists(root / top)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
    if (!is_source(entry.path())) continue;
    const fs::path file = fs::relative(entry.path(), root);
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, pattern)) continue;
      const bool quoted = match[1] == "\"";
      found.push_back({file.string(), file.parent_path().string(), match[2],
                       quoted ? folder_of_header(root, match[2]) : ""});
    }
  }
  return found;
}

bool is_at_or_below(const std::string& folder, const std::string& prefix) {
  return folder == prefix || folder.starts_with(prefix + "/");
}

const Names* row_of(std::string folder) {
  while (!kArrows.contains(folder)) {
    const auto slash = folder.rfind('/');
    if (slash == std::string::npos) return nullptr;
    folder.resize(slash);
  }
  return &kArrows.at(folder);
}

/// Includes against an arrow of kArrows.
Names forbidden_includes(const fs::path& root, const std::string& top) {
  Names violations;
  for (const Include& include : includes_below(root, top)) {
    if (include.target_folder.empty()) continue;
    const Names* allowed = row_of(include.folder);
    const auto permits = [&](const std::string& prefix) {
      return is_at_or_below(include.target_folder, prefix);
    };
    const bool own_room = row_of(include.target_folder) == allowed;
    // The entry points of the simulator see all of its rooms.
    const bool from_top = include.folder == top && permits(top);
    if (allowed != nullptr &&
        (own_room || from_top || std::any_of(allowed->begin(), allowed->end(), permits))) {
      continue;
    }
    violations.push_back(include.file + " includes " + include.target);
  }
  return violations;
}

/// Everything that a file under engine/ includes from outside the project, except the standard
/// library, POSIX and the libraries that the engine may know. A list of what is allowed catches
/// more than a list of what is not: Gloo, NCCL, CUDA and SimGrid are only the ones that we think of
/// today.
Names foreign_engine_includes(const fs::path& root) {
  static const std::regex standard(R"([a-z_]+)");
  static const Names allowed = {"nlohmann/", "fmt/",   "xxhash.h",  "cblas.h",    "sys/",
                                "unistd.h",  "time.h", "fnmatch.h", "immintrin.h"};
  Names violations;
  for (const Include& include : includes_below(root, "engine")) {
    if (!include.target_folder.empty() || std::regex_match(include.target, standard)) continue;
    const bool known = std::any_of(allowed.begin(), allowed.end(), [&](const auto& prefix) {
      return include.target.starts_with(prefix);
    });
    if (!known) violations.push_back(include.file + " includes " + include.target);
  }
  return violations;
}

using Edges = std::map<std::string, std::set<std::string>>;

/// The folders on a way from `folder` back to one that is on the way already; empty if there is
/// none.
Names cycle_from(const std::string& folder, const Edges& edges, Names& way,
                 std::set<std::string>& done) {
  const auto begin = std::find(way.begin(), way.end(), folder);
  if (begin != way.end()) return {begin, way.end()};
  if (!done.insert(folder).second) return {};
  way.push_back(folder);
  if (edges.contains(folder)) {
    for (const std::string& next : edges.at(folder)) {
      Names cycle = cycle_from(next, edges, way, done);
      if (!cycle.empty()) return cycle;
    }
  }
  way.pop_back();
  return {};
}

Names folder_cycle(const fs::path& root) {
  Edges edges;
  for (const std::string& top : kTops) {
    for (const Include& include : includes_below(root, top)) {
      const std::string& target = include.target_folder;
      if (!target.empty() && target != include.folder) edges[include.folder].insert(target);
    }
  }
  std::set<std::string> done;
  for (const auto& [folder, targets] : edges) {
    Names way;
    Names cycle = cycle_from(folder, edges, way, done);
    if (!cycle.empty()) return cycle;
  }
  return {};
}

std::string joined(const Names& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("the engine includes no header of a backend") {
  REQUIRE(includes_below(kRoot, "engine").size() > 50);  // the scan sees the engine
  const Names foreign = foreign_engine_includes(kRoot);
  INFO(joined(foreign));
  CHECK(foreign.empty());
}

TEST_CASE("every include follows an arrow") {
  for (const std::string& top : kTops) {
    REQUIRE(includes_below(kRoot, top).size() > 50);
    const Names violations = forbidden_includes(kRoot, top);
    INFO(joined(violations));
    CHECK(violations.empty());
  }
}

TEST_CASE("no folder includes one that includes it") {
  const Names cycle = folder_cycle(kRoot);
  INFO(joined(cycle));
  CHECK(cycle.empty());
}

TEST_CASE("the layering test sees an include that must not be there") {
  const gradsync::test::TemporaryDirectory directory;
  const fs::path& root = directory.path();
  const auto write = [&](const std::string& file, const std::string& text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  write("engine/ddp/fine.hpp", "#include <vector>\n#include \"gradsync/comm/work.hpp\"\n");
  write("engine/comm/work.hpp", "#include \"gradsync/core/error.hpp\"\n");
  write("testbed/rank/fine.cpp", "#include \"gradsync/ddp/fine.hpp\"\n");
  CHECK(foreign_engine_includes(root).empty());
  CHECK(forbidden_includes(root, "engine").empty());
  CHECK(forbidden_includes(root, "testbed").empty());
  CHECK(folder_cycle(root).empty());

  write("engine/ddp/gloo.cpp", "#include <gloo/allreduce.h>\n");
  write("engine/ddp/nccl.hpp", "  #  include <nccl.h>\n");
  write("engine/ddp/cuda.hpp", "#include <cuda_runtime.h>\n");
  write("engine/ddp/simgrid.cpp",
        "#include <simgrid/s4u.hpp>\n#include \"gradsync/simulator/world.hpp\"\n");
  CHECK(foreign_engine_includes(root).size() == 4);
  CHECK(forbidden_includes(root, "engine") ==
        Names{"engine/ddp/simgrid.cpp includes gradsync/simulator/world.hpp"});

  write("testbed/record/up.cpp", "#include \"gradsync/testbed/result/run_result.hpp\"\n");
  CHECK(forbidden_includes(root, "testbed").size() == 1);
  write("testbed/result/down.cpp", "#include \"gradsync/testbed/record/files.hpp\"\n");
  CHECK(folder_cycle(root).size() == 2);

  write("engine/core/old.cpp", "#include \"engine/ddp/fine.hpp\"\n");
  CHECK(forbidden_includes(root, "engine").size() == 2);
}
