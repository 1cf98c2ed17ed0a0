#include "gradsync/backends/launch/launcher.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include <fmt/format.h>
#include <asio.hpp>

#include "gradsync/backends/launch/child_process.hpp"
#include "gradsync/backends/launch/launch_environment.hpp"
#include "gradsync/backends/launch/orphan_guard.hpp"
#include "gradsync/backends/launch/output_pipe.hpp"
#include "gradsync/backends/store/failure.hpp"
#include "gradsync/backends/store/rendezvous.hpp"

namespace gradsync {
namespace {

using std::chrono::steady_clock;

/// Poll interval for ended children, in case another part of the process has taken over SIGCHLD.
constexpr std::chrono::milliseconds kPoll{200};
/// After the last rank has ended: time to read output still in the pipes (a grandchild may hold one
/// open).
constexpr std::chrono::milliseconds kDrain{500};
/// Time for other nodes' ranks to read the store's last answers.
constexpr Seconds kOtherNodes{60};

asio::steady_timer::duration to_duration(Seconds seconds) {
  return std::chrono::duration_cast<asio::steady_timer::duration>(seconds);
}

void check(const LaunchOptions& o) {
  const auto fail = [](const std::string& text) { throw Error(ErrorCode::kUsage, text); };
  if (o.nproc_per_node < 1) fail("--nproc-per-node must be at least 1");
  if (o.nnodes < 1) fail("--nnodes must be at least 1");
  if (o.node_rank < 0 || o.node_rank >= o.nnodes) {
    fail(fmt::format("--node-rank {} is not in 0 to {}", o.node_rank, o.nnodes - 1));
  }
  if (o.standalone && o.nnodes > 1) fail("--standalone is for one node; leave out --nnodes");
  if (o.master_port < 0 || o.master_port > 65535) {
    fail(fmt::format("--master-port {} is not a port", o.master_port));
  }
}

/// A currently free port, for a store that rank 0 will serve.
int free_port() {
  const TcpStoreServer probe({.bind_address = "127.0.0.1", .port = 0});
  return probe.port();
}

/// Writes a whole line at once, so that the lines of several ranks do not interleave.
void write_line(int fd, const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const auto written = ::write(fd, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;  // no reader left; the ranks continue
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

struct Rank {
  RankExit exit;
  bool started = false;
  bool ended = false;
  bool told_to_end = false;
  std::unique_ptr<OutputPipe> out;
  std::unique_ptr<OutputPipe> err;
};

class Launch {
 public:
  explicit Launch(const LaunchOptions& options) : options_(options) {}
  ~Launch() { clean_up(); }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  LaunchResult run();

 private:
  void serve_store();
  void start_ranks();
  void start(Rank& rank, const std::string& path);
  std::unique_ptr<OutputPipe> make_stream(int rank, bool is_stderr);
  void watch_signals();
  void poll_children();
  void look_for_ended();
  void on_end(Rank& rank, const ChildEnd& end);
  void publish(const RankExit& exit);
  void watch_failures();
  void on_told_failure(const Failure& failure);
  RankEnvironment environment() const;
  void end_all_after(Seconds grace);
  void signal_all(int signal);
  void drain();
  void wait_for_other_nodes();
  void clean_up();
  bool all_ended() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.ended; });
  }

  const LaunchOptions& options_;
  const steady_clock::time_point begin_ = steady_clock::now();
  std::string host_;
  int port_ = 0;
  std::unique_ptr<TcpStoreServer> server_;
  OrphanGuard guard_;
  asio::io_context io_;
  asio::signal_set signals_{io_, SIGINT, SIGTERM, SIGHUP};
  asio::signal_set child_signals_{io_, SIGCHLD};
  asio::steady_timer poll_{io_};
  asio::steady_timer term_timer_{io_};
  asio::steady_timer kill_timer_{io_};
  asio::steady_timer deadline_{io_};
  std::vector<Rank> ranks_;
  LaunchResult result_;
  std::jthread failures_;  // last member, because its thread uses the others
};

LaunchResult Launch::run() {
  serve_store();
  watch_signals();
  start_ranks();
  if (options_.deadline) {
    deadline_.expires_after(to_duration(*options_.deadline));
    deadline_.async_wait([this](asio::error_code cancelled) {
      if (cancelled || all_ended()) return;
      result_.deadline_ended = true;
      end_all_after(Seconds(0));
    });
  }
  poll_children();
  watch_failures();
  while (!all_ended()) io_.run_one();
  failures_ = {};
  drain();
  clean_up();
  wait_for_other_nodes();
  for (const Rank& rank : ranks_) result_.ranks.push_back(rank.exit);
  return result_;
}

void Launch::serve_store() {
  host_ = options_.standalone ? "127.0.0.1" : options_.master_addr;
  port_ = options_.standalone ? 0 : options_.master_port;
  if (options_.host_store && options_.node_rank == 0) {
    server_ = std::make_unique<TcpStoreServer>(
        TcpStoreServer::Options{.bind_address = options_.standalone ? host_ : "",
                                .port = static_cast<std::uint16_t>(port_)});
    port_ = server_->port();
  } else if (port_ == 0) {
    port_ = free_port();
  }
}

void Launch::start_ranks() {
  const std::string path = find_program(options_.program);
  ranks_.resize(static_cast<std::size_t>(options_.nproc_per_node));
  for (int local_rank = 0; local_rank < options_.nproc_per_node; ++local_rank) {
    Rank& rank = ranks_[static_cast<std::size_t>(local_rank)];
    rank.exit.local_rank = local_rank;
    rank.exit.rank = options_.node_rank * options_.nproc_per_node + local_rank;
    start(rank, path);
  }
}

std::unique_ptr<OutputPipe> Launch::make_stream(int rank, bool is_stderr) {
  return std::make_unique<OutputPipe>(io_, [this, rank, is_stderr](const std::string& line) {
    if (options_.on_line) return options_.on_line(rank, is_stderr, line);
    write_line(is_stderr ? STDERR_FILENO : STDOUT_FILENO, fmt::format("[{}]:{}\n", rank, line));
  });
}

void Launch::start(Rank& rank, const std::string& path) {
  ChildProgram program;
  program.path = path;
  program.args = options_.args;
  program.env = rank_variables(options_, rank.exit.local_rank, host_, port_);
  if (options_.prefix_output || options_.on_line) {
    rank.out = make_stream(rank.exit.rank, false);
    rank.err = make_stream(rank.exit.rank, true);
    program.stdout_fd = rank.out->write_end();
    program.stderr_fd = rank.err->write_end();
  }
  program.guard_fd = guard_.fd();
  rank.exit.pid = start_child(program);
  rank.started = true;
  for (OutputPipe* stream : {rank.out.get(), rank.err.get()}) {
    if (stream == nullptr) continue;
    stream->started();
    stream->read();
  }
}

void Launch::watch_signals() {
  signals_.async_wait([this](asio::error_code cancelled, int signal) {
    if (cancelled) return;
    if (result_.forwarded_signal == 0) result_.forwarded_signal = signal;
    signal_all(signal);
    end_all_after(options_.kill_grace);
    watch_signals();
  });
}

void Launch::poll_children() {
  look_for_ended();
  poll_.expires_after(kPoll);
  poll_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) poll_children();
  });
  child_signals_.cancel();
  child_signals_.async_wait([this](asio::error_code cancelled, int) {
    if (!cancelled) poll_children();
  });
}

void Launch::look_for_ended() {
  for (Rank& rank : ranks_) {
    ChildEnd end;
    if (!rank.ended && child_has_ended(rank.exit.pid, end)) on_end(rank, end);
  }
}

void Launch::on_end(Rank& rank, const ChildEnd& end) {
  rank.ended = true;
  rank.exit.exit_code = end.exit_code;
  rank.exit.signal = end.signal;
  rank.exit.time = steady_clock::now() - begin_;
  rank.exit.ended_by_launcher = rank.told_to_end;
  // Processes that the rank started and left behind.
  ::kill(-rank.exit.pid, SIGTERM);
  if (!rank.exit.failed() || rank.told_to_end) return;
  if (!result_.first_failure) {
    result_.first_failure = rank.exit;
    publish(rank.exit);
    if (result_.told_failure.empty()) end_all_after(options_.failure_grace);
  }
}

RankEnvironment Launch::environment() const {
  RankEnvironment environment;
  environment.master_addr = server_ ? "127.0.0.1" : host_;
  environment.master_port = port_;
  environment.agent_store = true;
  environment.job_id = options_.run_id + ".0";  // no restarts
  return environment;
}

/// Watches the store for reported failures. A rank that has reported a failure may block before its
/// process exits, and so may all the others; the launcher would then see no process end. On other
/// nodes the store may start later than this launcher and stop earlier. Neither is a failure,
/// because this node's program may run longer than the first node's.
void Launch::watch_failures() {
  if (!options_.host_store) return;
  failures_ = std::jthread([this](const std::stop_token& stop) {
    constexpr Seconds kConnect{0.5}, kPause{1}, kLong{3600};
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    const auto pause = [&] {
      stopped.wait_for(lock, stop, kPause, [&] { return stop.stop_requested(); });
    };
    if (!server_) pause();
    while (!stop.stop_requested()) {
      try {
        const JobStore job = connect_job_store(environment(), kConnect);
        const std::stop_callback close(stop, [&] { job.connection->close(); });
        const std::optional<Failure> failure = wait_for_end(*job.store, kLong);
        if (failure) asio::post(io_, [this, failure] { on_told_failure(*failure); });
        return;
      } catch (const Error&) {
        pause();  // store not up yet, or gone; ranks report that themselves
      }
    }
  });
}

void Launch::on_told_failure(const Failure& failure) {
  if (all_ended() || !result_.told_failure.empty()) return;
  result_.told_failure = failure.describe();
  if (!result_.first_failure) end_all_after(options_.failure_grace);
}

void Launch::publish(const RankExit& exit) {
  if (!options_.host_store) return;
  constexpr Seconds kTimeout{2};
  try {
    const JobStore job = connect_job_store(environment(), kTimeout);
    publish_failure(
        *job.store,
        {exit.rank, ErrorCode::kRankDied, fmt::format("died ({})", exit.describe()), {}}, kTimeout);
  } catch (const Error&) {
    // Another node's launcher hosted the store and has exited; its ranks know.
  }
}

/// Sends SIGTERM to the ranks still running after `grace`, and SIGKILL `kill_grace` later.
void Launch::end_all_after(Seconds grace) {
  term_timer_.expires_after(to_duration(grace));
  term_timer_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) signal_all(SIGTERM);
  });
  kill_timer_.expires_after(to_duration(grace + options_.kill_grace));
  kill_timer_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) signal_all(SIGKILL);
  });
}

void Launch::signal_all(int signal) {
  // Ranks that have just exited did so before this signal.
  look_for_ended();
  for (Rank& rank : ranks_) {
    if (!rank.started || rank.ended) continue;
    rank.told_to_end = true;
    ::kill(-rank.exit.pid, signal);
    // A stopped process would not handle SIGTERM.
    ::kill(-rank.exit.pid, SIGCONT);
  }
}

void Launch::drain() {
  const auto streams_open = [&] {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
      return (rank.out && rank.out->open()) || (rank.err && rank.err->open());
    });
  };
  const auto end = steady_clock::now() + kDrain;
  while (streams_open() && steady_clock::now() < end) io_.run_one_until(end);
  for (Rank& rank : ranks_) {
    if (rank.out) rank.out->finish();
    if (rank.err) rank.err->finish();
  }
}

void Launch::wait_for_other_nodes() {
  if (server_ && options_.nnodes > 1) server_->wait_until_idle(kOtherNodes);
}

/// Leaves no process behind: kills what is left of the ranks' process groups, while the zombies
/// still hold the group ids.
void Launch::clean_up() {
  for (Rank& rank : ranks_) {
    if (!rank.started) continue;
    ::kill(-rank.exit.pid, SIGKILL);
    guard_.remove(rank.exit.pid);
    reap_child(rank.exit.pid);
    rank.started = false;
  }
}

}  // namespace

LaunchResult launch(const LaunchOptions& options) {
  check(options);
  return Launch(options).run();
}

}  // namespace gradsync
