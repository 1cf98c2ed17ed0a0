#include "gradsync/backends/rank/dump_service.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/backends/rank/rank_reports.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/record/rank_report_json.hpp"

namespace gradsync {
namespace {

constexpr Seconds kAnswerTime{5};
/// Enough to transfer an answer that is already in the store, even on a busy machine.
constexpr Seconds kShortestTurn{0.2};
constexpr const char* kScenarioKey = "scenario";
constexpr const char* kRequestsKey = "dump_requests";

std::string request_key(std::int64_t number) {
  return fmt::format("dump/{}", number);
}

std::string answer_key(std::int64_t number, int rank) {
  return fmt::format("dump/{}/{}", number, rank);
}

std::atomic<int> dump_signal_fd = -1;

void notify(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof(one));
}

extern "C" void on_sigusr1(int) {
  const int saved = errno;
  notify(dump_signal_fd);
  errno = saved;
}

}  // namespace

DumpService::DumpService(const RankEnvironment& environment, Seconds connect_timeout,
                         std::string run_directory, std::function<RankReport()> snapshot)
    : rank_(environment.rank),
      run_directory_(std::move(run_directory)),
      snapshot_(std::move(snapshot)),
      job_(connect_job_store(environment, connect_timeout)),
      signal_fd_(::eventfd(0, EFD_CLOEXEC)) {
  dump_signal_fd = signal_fd_;
  struct sigaction action {};
  action.sa_handler = on_sigusr1;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, nullptr);
  store_thread_ = std::thread([this] { answer_store(); });
  signal_thread_ = std::thread([this] { answer_signals(); });
}

DumpService::~DumpService() {
  std::signal(SIGUSR1, SIG_IGN);  // a late signal must not end the process
  stopped_ = true;
  job_.connection->close();
  notify(signal_fd_);
  store_thread_.join();
  signal_thread_.join();
  ::close(signal_fd_);
}

void DumpService::answer_store() {
  constexpr Seconds kLong{3600};
  for (std::int64_t number = 1; !stopped_;) {
    try {
      job_.store->get(request_key(number), kLong);
      set_large(*job_.store, answer_key(number, rank_), dump_json(to_json(snapshot_())),
                kAnswerTime);
      ++number;
    } catch (const StoreTimeout&) {
      continue;
    } catch (const Error&) {
      return;  // the store is gone, and with it anybody who could ask
    }
  }
}

void DumpService::answer_signals() {
  pollfd waiting{signal_fd_, POLLIN, 0};
  while (true) {
    constexpr int kForever = -1;
    while (::poll(&waiting, 1, kForever) < 0 && errno == EINTR) {
    }
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = ::read(signal_fd_, &count, sizeof(count));
    if (stopped_) return;
    try {
      write_dump_file(run_directory_.empty() ? "." : run_directory_, snapshot_());
    } catch (const std::exception&) {
      continue;  // a full disk is no reason to stop training
    }
  }
}

void publish_scenario(Store& store, const std::string& scenario, Seconds timeout) {
  store.set(kScenarioKey, scenario, timeout);
}

LiveJob request_dumps(Store& store, Seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto left = [&] { return Seconds(deadline - std::chrono::steady_clock::now()); };
  LiveJob job;
  job.scenario = store.get(kScenarioKey, left());
  const std::string size = store.get("world_size", left());
  std::from_chars(size.data(), size.data() + size.size(), job.world_size);
  const std::int64_t number = store.add(kRequestsKey, 1, left());
  store.set(request_key(number), "", left());
  // Wait in turns, so that a rank that never answers does not use up the time of the others.
  std::vector<int> waiting(static_cast<std::size_t>(job.world_size));
  std::iota(waiting.begin(), waiting.end(), 0);
  do {
    std::erase_if(waiting, [&](int rank) {
      const std::string key = answer_key(number, rank);
      try {
        const Seconds turn = left() / static_cast<double>(waiting.size());
        const std::string text = get_large(store, key, std::max(turn, kShortestTurn));
        job.reports.push_back(rank_report_from_text(text, key));
        return true;
      } catch (const StoreTimeout&) {
        return false;
      }
    });
  } while (!waiting.empty() && left() > Seconds{0});
  // Ranks that have not answered are stopped or gone.
  std::ranges::sort(job.reports, {}, &RankReport::rank);
  return job;
}

}  // namespace gradsync
