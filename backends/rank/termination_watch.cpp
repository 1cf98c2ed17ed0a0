#include "gradsync/backends/rank/termination_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace gradsync {
namespace {

constexpr int kGraceMilliseconds = 500;
constexpr int kTerminatedStatus = 128 + SIGTERM;

std::atomic<int> termination_signal_fd = -1;

void signal(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof(one));
}

extern "C" void on_sigterm(int) {
  const int saved = errno;
  signal(termination_signal_fd);
  errno = saved;
}

}  // namespace

TerminationWatch::TerminationWatch()
    : signal_fd_(::eventfd(0, EFD_CLOEXEC)), end_fd_(::eventfd(0, EFD_CLOEXEC)) {
  termination_signal_fd = signal_fd_;
  struct sigaction action {};
  action.sa_handler = on_sigterm;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, &old_action_);
  thread_ = std::thread([this] { watch(); });
}

TerminationWatch::~TerminationWatch() {
  ::sigaction(SIGTERM, &old_action_, nullptr);
  signal(end_fd_);
  thread_.join();
  ::close(signal_fd_);
  ::close(end_fd_);
}

void TerminationWatch::set(std::function<void()> on_signal, std::function<void()> last_words) {
  const std::lock_guard lock(mutex_);
  on_signal_ = std::move(on_signal);
  last_words_ = std::move(last_words);
}

void TerminationWatch::clear() {
  set(nullptr, nullptr);
}

bool TerminationWatch::terminated() const {
  const std::lock_guard lock(mutex_);
  return terminated_;
}

void TerminationWatch::watch() {
  std::array<pollfd, 2> fds{{{signal_fd_, POLLIN, 0}, {end_fd_, POLLIN, 0}}};
  constexpr int kForever = -1;
  while (::poll(fds.data(), fds.size(), kForever) < 0 && errno == EINTR) {
  }
  if ((fds[0].revents & POLLIN) == 0) return;
  {
    const std::lock_guard lock(mutex_);
    terminated_ = true;
    if (on_signal_) on_signal_();
  }
  fds[0].fd = -1;
  if (::poll(fds.data(), fds.size(), kGraceMilliseconds) > 0) return;
  const std::lock_guard lock(mutex_);
  if (last_words_) last_words_();
  ::_exit(kTerminatedStatus);
}

}  // namespace gradsync
