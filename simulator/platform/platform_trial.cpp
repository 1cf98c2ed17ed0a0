#include "gradsync/simulator/platform/platform_trial.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/simulator/platform/platform.hpp"
#include "gradsync/testbed/record/files.hpp"

namespace gradsync {
namespace {

namespace s4u = simgrid_compat::s4u;

constexpr int kEveryPairRanks = 64;
constexpr unsigned kMostSeconds = 60;  // then accepted as it is: large files take long to read
constexpr const char* kPointer = "/cluster/platform_file";

/// The child's current action, and finally what is wrong, in memory shared by both processes.
struct Progress {
  enum class State { kTrying, kRefused, kGood };
  State state = State::kTrying;
  char text[1000] = "reading it";

  void say(const std::string& words) { text[words.copy(text, sizeof(text) - 1)] = '\0'; }
};

class SharedProgress {
 public:
  SharedProgress()
      : memory_(mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0)) {
    if (memory_ == MAP_FAILED)
      throw Error(ErrorCode::kInternal, "no memory for a platform's trial");
    progress_ = new (memory_) Progress;
  }
  ~SharedProgress() { munmap(memory_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  Progress& operator*() const { return *progress_; }
  Progress* operator->() const { return progress_; }

 private:
  void* memory_;
  Progress* progress_;
};

/// All pairs or, for many ranks, those used by rings and trees.
std::vector<std::pair<int, int>> pairs_to_try(int ranks) {
  std::vector<std::pair<int, int>> pairs;
  for (int from = 0; from < ranks; ++from) {
    if (ranks <= kEveryPairRanks) {
      for (int to = 0; to < ranks; ++to) {
        if (to != from) pairs.emplace_back(from, to);
      }
      continue;
    }
    for (int step = 1; step < ranks; step *= 2) {
      pairs.emplace_back(from, (from + step) % ranks);
      pairs.emplace_back((from + step) % ranks, from);
    }
  }
  return pairs;
}

/// The value of an XML attribute in a tag, or an empty string.
std::string attribute(const std::string& tag, const std::string& name) {
  const std::size_t at = tag.find(name + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 2;
  if (begin > tag.size()) return "";
  return tag.substr(begin, tag.find(tag[begin - 1], begin) - begin);
}

/// A platform file may contain SimGrid options. Those of its TCP model can be lists of factors by
/// size, which have no meaning here, because this simulator's links have no factors.
std::optional<std::string> find_list_option(const std::string& file) {
  const std::string text = read_file(file);
  for (std::size_t at = text.find("<prop"); at != std::string::npos;
       at = text.find("<prop", at + 1)) {
    const std::string tag = text.substr(at, text.find('>', at) - at);
    const std::string option = attribute(tag, "id"), value = attribute(tag, "value");
    if (option.ends_with("-factor") && value.find_first_of(":;") != std::string::npos) {
      return fmt::format("option {} is {}: lists are not taken", option, value);
    }
  }
  return std::nullopt;
}

/// Runs in the child. Returns what is wrong with the file, or nothing.
std::optional<std::string> find_fault(const ClusterSpec& cluster, int ranks, Progress& progress) {
  if (auto fault = find_list_option(cluster.platform_file)) return fault;
  SimEngine engine;
  const Platform platform(engine, cluster, ranks);
  // As at the start of a run: some kinds of zones compute their routes only then.
  engine.simgrid().get_netzone_root()->seal();
  for (int rank = 0; rank < ranks; ++rank) {
    const s4u::Host* host = platform.host(rank);
    if (!host->is_on()) return fmt::format("host {} is off from the start", host->get_cname());
  }
  const std::vector<std::pair<int, int>> pairs = pairs_to_try(ranks);
  for (const auto& [from, to] : pairs) {
    const std::string names = fmt::format("hosts {} and {}", platform.host(from)->get_cname(),
                                          platform.host(to)->get_cname());
    progress.say("looking for a route between " + names);
    const std::vector<Platform::Link*> route = platform.route(from, to);
    if (route.empty()) return "no route between " + names;
    for (const Platform::Link* link : route) {
      if (link->get_sharing_policy() == s4u::Link::SharingPolicy::WIFI) {
        return fmt::format(
            "the way between {} leads over {}, a Wi-Fi link; stations of Wi-Fi are "
            "not modelled",
            names, link->get_cname());
      }
      if (link->get_bandwidth() <= 0) {
        return fmt::format("the way between {} leads over {}, which has no bandwidth", names,
                           link->get_cname());
      }
    }
  }
  engine.start_actor("trial", platform.host(0), std::size_t{256} * 1024, [&] {
    engine.in_kernel([&] {
      for (const auto& [from, to] : pairs) {
        progress.say(fmt::format("sending from host {} to host {}",
                                 platform.host(from)->get_cname(), platform.host(to)->get_cname()));
        engine.transfer(platform.host(from), platform.host(to), 1, {[] {}});
      }
    });
  });
  engine.run([] {});
  return std::nullopt;
}

ConfigError::Details refusal(const ClusterSpec& cluster, int ranks, const std::string& found) {
  return {"", kPointer, fmt::format("a platform with {} hosts and routes between them", ranks),
          fmt::format("in {}: {}", cluster.platform_file, found), ""};
}

[[noreturn]] void run_child(const ClusterSpec& cluster, int ranks, Progress& progress, int output) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::signal(SIGABRT, SIG_DFL);
  alarm(kMostSeconds);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  const auto refuse = [&](const ConfigError::Details& details) {
    progress.say(details.pointer + '\n' + details.expected + '\n' + details.found + '\n' +
                 details.hint);
    progress.state = Progress::State::kRefused;
    _exit(0);
  };
  try {
    if (const auto fault = find_fault(cluster, ranks, progress)) {
      refuse(refusal(cluster, ranks, *fault));
    }
  } catch (const ConfigError& error) {
    refuse(error.details());
  } catch (const std::exception& error) {
    refuse(refusal(cluster, ranks,
                   fmt::format("SimGrid's \"{}\" while {}", error.what(), progress.text)));
  }
  progress.state = Progress::State::kGood;
  _exit(0);
}

/// Parses the child's message.
ConfigError::Details details_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  lines.resize(4);
  return {"", lines[0], lines[1], lines[2], lines[3]};
}

std::string read_all(int descriptor) {
  constexpr std::size_t kMostBytes = 64 * 1024;
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = read(descriptor, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    // A long backtrace may follow: read it to its end, but do not keep it.
    if (text.size() < kMostBytes) text.append(buffer, static_cast<std::size_t>(count));
  }
}

/// The first line of SimGrid's log, without time, file and level.
std::string last_words(const std::string& output) {
  std::string line = output.substr(0, output.find('\n'));
  const std::size_t critical = output.find("/CRITICAL]");
  if (critical != std::string::npos) {
    line = output.substr(critical, output.find('\n', critical) - critical);
  }
  if (const auto end = line.rfind("] "); end != std::string::npos) line = line.substr(end + 2);
  if (const auto level = line.find("/CRITICAL]"); level == 0) line = line.substr(10);
  return line;
}

}  // namespace

void try_platform_file(const ClusterSpec& cluster, int ranks) {
  const SharedProgress progress;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::kInternal, "no pipe for a platform's trial");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run_child(cluster, ranks, *progress, ends[1]);
  }
  close(ends[1]);
  const std::string output = child > 0 ? read_all(ends[0]) : "";
  close(ends[0]);
  if (child < 0) throw Error(ErrorCode::kInternal, "no process for a platform's trial");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const bool took_too_long = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  if (progress->state == Progress::State::kGood || took_too_long) return;
  if (progress->state == Progress::State::kRefused) throw ConfigError(details_in(progress->text));
  throw ConfigError(
      refusal(cluster, ranks,
              fmt::format("SimGrid gave up while {}: {}", progress->text, last_words(output))));
}

}  // namespace gradsync
