#include "gradsync/backends/launch/launcher.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "gradsync/backends/store/failure.hpp"
#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/backends/store/tcp_store_server.hpp"
#include "gradsync/core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync;

namespace {

/// A shell script as the program; what the ranks print is kept apart by rank and stream.
struct Script {
  explicit Script(const std::string& text, int ranks = 1) {
    options.nproc_per_node = ranks;
    options.standalone = true;
    options.program = "sh";
    options.args = {"-c", text};
    options.failure_grace = Seconds(0.2);
    options.kill_grace = Seconds(60);
    options.deadline = Seconds(120);
    options.on_line = [this](int rank, bool is_stderr, const std::string& line) {
      (is_stderr ? err : out)[rank].push_back(line);
      if (line == "ready") ++ready;
    };
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  LaunchResult run() { return launch(options); }

  LaunchOptions options;
  std::map<int, std::vector<std::string>> out;
  std::map<int, std::vector<std::string>> err;
  std::atomic<int> ready = 0;
};

bool runs(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return false;
  const char state = text[text.rfind(')') + 2];
  return state != 'Z' && state != 'X';
}

/// Waits for something that must come; false if it does not in any reasonable time.
template <typename Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::string usage_error(const LaunchOptions& options) {
  try {
    launch(options);
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kUsage);
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("launch: ranks get torchrun's environment") {
  Script script(
      "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE "
      "$ROLE_RANK $ROLE_WORLD_SIZE $ROLE_NAME;"
      "echo $MASTER_ADDR $TORCHELASTIC_RUN_ID $TORCHELASTIC_RESTART_COUNT "
      "$TORCHELASTIC_MAX_RESTARTS $TORCHELASTIC_USE_AGENT_STORE; echo $MASTER_PORT",
      3);
  script.options.run_id = "job5";
  CHECK(script.run().ok());
  for (int rank = 0; rank < 3; ++rank) {
    const std::string r = std::to_string(rank);
    REQUIRE(script.out[rank].size() == 3);
    CHECK(script.out[rank][0] == r + " " + r + " 3 3 0 1 " + r + " 3 default");
    CHECK(script.out[rank][1] == "127.0.0.1 job5 0 0 True");
    CHECK(script.out[rank][2] == script.out[0][2]);
    CHECK(std::stoi(script.out[rank][2]) > 0);
  }
}

TEST_CASE("launch: ranks of the second node") {
  Script script("echo $RANK $LOCAL_RANK $WORLD_SIZE $GROUP_RANK $MASTER_ADDR $MASTER_PORT", 2);
  script.options.standalone = false;
  script.options.nnodes = 2;
  script.options.node_rank = 1;
  script.options.master_addr = "node0";
  script.options.master_port = 1234;
  CHECK(script.run().ok());
  CHECK(script.out[2] == std::vector<std::string>{"2 0 4 1 node0 1234"});
  CHECK(script.out[3] == std::vector<std::string>{"3 1 4 1 node0 1234"});
}

TEST_CASE("launch: one thread a rank unless the user says otherwise") {
  ::unsetenv("OMP_NUM_THREADS");
  Script two("echo \"$OMP_NUM_THREADS\"", 2);
  two.run();
  CHECK(two.out[1] == std::vector<std::string>{"1"});
  Script one("echo \"$OMP_NUM_THREADS\"", 1);
  one.run();
  CHECK(one.out[0] == std::vector<std::string>{""});
  Script own("echo $OMP_NUM_THREADS", 2);
  own.options.env["OMP_NUM_THREADS"] = "8";
  own.run();
  CHECK(own.out[1] == std::vector<std::string>{"8"});
}

TEST_CASE("launch: output comes as whole lines, the two streams apart") {
  Script script("printf 'a\\nb'; echo err >&2; printf 'no end' >&2; printf '\\n\\n'", 2);
  CHECK(script.run().ok());
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(script.out[rank] == std::vector<std::string>{"a", "b", ""});
    CHECK(script.err[rank] == std::vector<std::string>{"err", "no end"});
  }
}

TEST_CASE("launch: much output of many ranks is complete") {
  Script script("i=0; while [ $i -lt 3000 ]; do echo line $i of rank $RANK; i=$((i+1)); done", 4);
  CHECK(script.run().ok());
  for (int rank = 0; rank < 4; ++rank) {
    REQUIRE(script.out[rank].size() == 3000);
    CHECK(script.out[rank][2999] == "line 2999 of rank " + std::to_string(rank));
  }
}

TEST_CASE("launch: standard input is empty") {
  Script script("cat; echo end");
  CHECK(script.run().ok());
  CHECK(script.out[0] == std::vector<std::string>{"end"});
}

TEST_CASE("launch: the first failure by time is named, and the others are ended") {
  Script script("if [ $RANK = 1 ]; then exit 7; fi; exec sleep 1000", 3);
  const LaunchResult result = script.run();
  REQUIRE(result.first_failure);
  CHECK(result.first_failure->rank == 1);
  CHECK(result.first_failure->exit_code == 7);
  CHECK(result.exit_status() == 7);
  CHECK_THAT(result.describe(), test::contains("rank 1"));
  CHECK_THAT(result.describe(), test::contains("exit status 7"));
  CHECK_FALSE(result.ranks[1].ended_by_launcher);
  for (const std::size_t other : {0u, 2u}) {
    CHECK(result.ranks[other].ended_by_launcher);
    CHECK(result.ranks[other].signal == SIGTERM);
  }
}

TEST_CASE("launch: a rank that a signal ended") {
  Script script("[ $RANK = 0 ] && kill -SEGV $$; exec sleep 1000", 2);
  const LaunchResult result = script.run();
  REQUIRE(result.first_failure);
  CHECK(result.first_failure->signal == SIGSEGV);
  CHECK(result.exit_status() == 128 + SIGSEGV);
  CHECK_THAT(result.describe(), test::contains("signal 11"));
}

TEST_CASE("launch: after a failure the others have time to write down what they know") {
  Script script("if [ $RANK = 1 ]; then exit 1; fi; sleep 0.3; echo noticed; exit 6", 2);
  script.options.failure_grace = Seconds(60);
  const LaunchResult result = script.run();
  CHECK(result.first_failure->rank == 1);
  CHECK(result.ranks[0].exit_code == 6);
  CHECK_FALSE(result.ranks[0].ended_by_launcher);
  CHECK(script.out[0] == std::vector<std::string>{"noticed"});
}

TEST_CASE("launch: a rank that ignores SIGTERM is killed") {
  Script script("if [ $RANK = 1 ]; then exit 1; fi; trap '' TERM; while :; do sleep 1000; done", 2);
  script.options.failure_grace = Seconds(0.2);
  script.options.kill_grace = Seconds(0.3);
  const LaunchResult result = script.run();
  CHECK(result.ranks[0].signal == SIGKILL);
  CHECK(result.first_failure->rank == 1);
}

TEST_CASE("launch: signals are forwarded to all ranks") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Script script("trap 'echo got it; kill $!; exit 3' TERM INT HUP; sleep 1000 & echo ready; wait",
                  2);
    std::thread sender([&] {
      if (comes_true([&] { return script.ready == 2; })) ::kill(::getpid(), signal);
    });
    const LaunchResult result = script.run();
    sender.join();
    CHECK(result.forwarded_signal == signal);
    CHECK(result.exit_status() == 128 + signal);
    CHECK_FALSE(result.first_failure);
    for (int rank = 0; rank < 2; ++rank) {
      CHECK(script.out[rank] == std::vector<std::string>{"ready", "got it"});
      CHECK(result.ranks[static_cast<std::size_t>(rank)].exit_code == 3);
    }
  }
}

TEST_CASE("launch: a launch that takes too long is ended") {
  Script script("exec sleep 1000", 2);
  script.options.deadline = Seconds(0.3);
  const LaunchResult result = script.run();
  CHECK(result.deadline_ended);
  CHECK(result.exit_status() == 124);
  CHECK_FALSE(result.ok());
}

TEST_CASE("launch: what a rank started and left behind is ended with it") {
  Script script("sleep 1000 & echo $!; (trap '' TERM; exec sleep 1000) & echo $!; sleep 0.1", 2);
  CHECK(script.run().ok());
  for (int rank = 0; rank < 2; ++rank) {
    REQUIRE(script.out[rank].size() == 2);
    for (const std::string& pid : script.out[rank]) {
      CHECK(comes_true([&] { return !runs(std::stoi(pid)); }));
    }
  }
}

TEST_CASE("launch: killing the launcher leaves nothing behind") {
  test::TemporaryDirectory directory;
  const std::string pids = directory.path() / "pids";
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    // In the child: no assertions, and no return into the test.
    Script script("(trap '' TERM; exec sleep 1000) & echo $$ $! >> " + pids + "; wait", 2);
    try {
      script.run();
    } catch (...) {
    }
    ::_exit(0);
  }
  const auto recorded = [&] {
    std::ifstream file(pids);
    std::vector<int> result;
    for (int pid = 0; file >> pid;) result.push_back(pid);
    return result;
  };
  const bool started = comes_true([&] { return recorded().size() == 4; });
  ::kill(launcher, SIGKILL);
  ::waitpid(launcher, nullptr, 0);
  CHECK(started);
  for (const int pid : recorded()) {
    CHECK(comes_true([&] { return !runs(pid); }));
    if (runs(pid)) ::kill(pid, SIGKILL);
  }
}

TEST_CASE("launch: ranks of a second node that stay after a failure are ended") {
  TcpStoreServer server({.bind_address = "127.0.0.1"});
  Script script("echo ready; exec sleep 600");
  script.options.standalone = false;
  script.options.nnodes = 2;
  script.options.node_rank = 1;
  script.options.master_addr = "127.0.0.1";
  script.options.master_port = server.port();
  std::thread first_node([&] {
    if (!comes_true([&] { return script.ready == 1; })) return;
    RankEnvironment environment;
    environment.master_addr = "127.0.0.1";
    environment.master_port = server.port();
    environment.agent_store = true;
    environment.job_id = script.options.run_id + ".0";
    const JobStore job = connect_job_store(environment, Seconds(30));
    publish_failure(*job.store, {0, ErrorCode::kTimeout, "timed out in a test", {}}, Seconds(30));
  });
  const LaunchResult result = script.run();
  first_node.join();
  CHECK_FALSE(result.ok());
  CHECK_FALSE(result.deadline_ended);
  CHECK(result.exit_status() == 1);
  CHECK_THAT(result.describe(), test::contains("timed out in a test"));
}

TEST_CASE("launch: a second node's ranks go on when the first node's launcher has ended") {
  auto server =
      std::make_unique<TcpStoreServer>(TcpStoreServer::Options{.bind_address = "127.0.0.1"});
  Script script("echo ready; exec sleep 3");
  script.options.standalone = false;
  script.options.nnodes = 2;
  script.options.node_rank = 1;
  script.options.master_addr = "127.0.0.1";
  script.options.master_port = server->port();
  std::thread first_node([&] {
    comes_true([&] { return script.ready == 1; });
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // the launcher is connected
    server.reset();
  });
  const LaunchResult result = script.run();
  first_node.join();
  INFO(result.describe());
  CHECK(result.ok());
  CHECK_FALSE(result.ranks[0].ended_by_launcher);
}

TEST_CASE("launch: ranks inherit no file descriptors and no signal dispositions") {
  ::signal(SIGPIPE, SIG_IGN);
  Script script(
      "for fd in 3 4 5 6 7 8 9 10 11 12; do [ -e /proc/$$/fd/$fd ] && echo open: $fd; done;"
      "exec grep -E 'SigIgn|SigBlk' /proc/self/status");
  CHECK(script.run().ok());
  ::signal(SIGPIPE, SIG_DFL);
  CHECK(script.out[0] ==
        std::vector<std::string>{"SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"});
}

TEST_CASE("launch: options that make no sense are refused with their names") {
  LaunchOptions options;
  options.program = "sh";
  options.nproc_per_node = 0;
  CHECK_THAT(usage_error(options), test::contains("--nproc-per-node"));
  options.nproc_per_node = 1;
  options.node_rank = 1;
  CHECK_THAT(usage_error(options), test::contains("--node-rank"));
  options.node_rank = 0;
  options.nnodes = 2;
  options.standalone = true;
  CHECK_THAT(usage_error(options), test::contains("--standalone"));
}

TEST_CASE("launch: a program that cannot be started is named") {
  Script script("");
  script.options.program = "no-such-program";
  CHECK_THAT(usage_error(script.options), test::contains("no-such-program"));
  script.options.program = "/etc/passwd";
  CHECK_THAT(usage_error(script.options), test::contains("/etc/passwd"));
  test::TemporaryDirectory directory;
  const auto file = directory.path() / "broken";
  std::ofstream(file) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  script.options.program = file;
  CHECK_THAT(usage_error(script.options), test::contains("cannot start"));
}
