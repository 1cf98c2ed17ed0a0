#include "tools/command/cached_runs.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/backends/launch/child_process.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/sweep.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "gradsync/testbed/scenario/backend_descriptor.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

std::string key_of(const std::string& program, const Scenario& scenario) {
  std::vector<std::string> texts = {program, dump_json(to_json(scenario))};
  if (scenario.model.kind == ModelSpec::Kind::kReplay) {
    texts.push_back(read_file(scenario.model.replay.profile));
  }
  if (!scenario.data.path.empty()) texts.push_back(read_file(scenario.data.path));
  return content_key(texts);
}

bool is_simulated(const Scenario& scenario) {
  return backend_descriptor(scenario.backend).is_simulated;
}

/// Loads the result of an earlier run; returns false if it cannot be used.
bool reuse(const fs::path& file, const Scenario& scenario, CachedRun& run) {
  if (!fs::exists(file)) return false;
  const auto json = try_parse_json(read_file(file));
  if (json.is_discarded()) return false;
  run.result = point_result_from_json(json);
  run.reused = run.result.outcome == "completed" || is_simulated(scenario);
  return run.reused;
}

class Runs {
 public:
  Runs(const std::vector<Scenario>& scenarios, fs::path folder,
       const std::function<void(std::size_t, const CachedRun&)>& on_done)
      : scenarios_(scenarios), folder_(std::move(folder)), on_done_(on_done) {
    fs::create_directories(folder_);
    const std::string program = content_key({read_file("/proc/self/exe")});
    for (const Scenario& scenario : scenarios) {
      runs_.emplace_back().key = key_of(program, scenario);
    }
  }

  std::vector<CachedRun> run(int jobs) {
    std::size_t next = 0;
    while (next < runs_.size() || !children_.empty()) {
      while (next < runs_.size() && children_.size() < static_cast<std::size_t>(jobs))
        begin(next++);
      collect();
    }
    return std::move(runs_);
  }

 private:
  fs::path result_file(std::size_t i) const { return folder_ / (runs_[i].key + ".json"); }

  void begin(std::size_t i) {
    if (reuse(result_file(i), scenarios_[i], runs_[i])) {
      on_done_(i, runs_[i]);
      return;
    }
    fs::remove(result_file(i));
    const fs::path scenario = folder_ / (runs_[i].key + ".scenario.json");
    write_file(scenario, dump_json(to_json(scenarios_[i]), 2) + "\n");
    ChildProgram child;
    child.path = fs::read_symlink("/proc/self/exe");
    child.args = {"point-worker", "--scenario", scenario, "--result", result_file(i)};
    child.env = current_environment();
    children_[start_child(child)] = i;
  }

  void collect() {
    bool any = false;
    for (auto child = children_.begin(); child != children_.end();) {
      ChildEnd end;
      if (!child_has_ended(child->first, end)) {
        ++child;
        continue;
      }
      reap_child(child->first);
      finish(child->second, end);
      child = children_.erase(child);
      any = true;
    }
    if (!any && !children_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  void finish(std::size_t i, const ChildEnd& end) {
    CachedRun& run = runs_[i];
    if (fs::exists(result_file(i))) {
      run.result = point_result_from_json(parse_json(read_file(result_file(i))));
    } else {
      run.result.outcome = "failed";
      run.result.world_size = scenarios_[i].ranks;
      run.result.error = end.signal != 0
                             ? "its process was ended by " + describe_signal(end.signal)
                             : fmt::format("its process ended with status {}", end.exit_code);
    }
    on_done_(i, run);
  }

  const std::vector<Scenario>& scenarios_;
  fs::path folder_;
  const std::function<void(std::size_t, const CachedRun&)>& on_done_;
  std::vector<CachedRun> runs_;
  std::map<int, std::size_t> children_;  // by process id
};

}  // namespace

std::vector<CachedRun> run_cached(
    const std::vector<Scenario>& scenarios, const fs::path& folder, int jobs,
    const std::function<void(std::size_t, const CachedRun&)>& on_done) {
  if (jobs < 1) throw Error(ErrorCode::kUsage, "--jobs must be 1 or more");
  return Runs(scenarios, folder, on_done).run(jobs);
}

int default_jobs(const Scenario& scenario) {
  if (!is_simulated(scenario)) return 1;
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace gradsync
