#include "gradsync/backends/launch/orphan_guard.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

constexpr int kDismiss = 0;
constexpr std::size_t kMaxGroups = 4096;

/// The guard's main loop. Messages: a group to watch, the negative of a group to forget, or
/// kDismiss. Only async-signal-safe calls, because it is forked from a multithreaded process.
[[noreturn]] void keep_guard(int fd) {
  ::setsid();  // out of reach of terminal signals
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(signal, SIG_IGN);
  // Close inherited descriptors: a reader of the launcher's output must not wait for the guard, and
  // the guard must not keep the launcher's sockets open.
  if (fd != STDIN_FILENO) ::dup2(fd, STDIN_FILENO);
  ::close_range(STDIN_FILENO + 1, ~0u, 0);

  static std::array<int, kMaxGroups> groups;
  std::size_t count = 0;
  while (true) {
    int message = 0;
    const auto bytes = ::read(STDIN_FILENO, &message, sizeof(message));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes != sizeof(message)) break;  // the launcher is gone
    if (message == kDismiss) ::_exit(0);
    if (message > 0 && count < kMaxGroups) groups[count++] = message;
    for (std::size_t i = 0; message < 0 && i < count; ++i) {
      if (groups[i] == -message) groups[i] = groups[--count];
    }
  }
  for (std::size_t i = 0; i < count; ++i) ::kill(-groups[i], SIGKILL);
  ::_exit(0);
}

}  // namespace

OrphanGuard::OrphanGuard() {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kInternal, fmt::format("pipe: {}", std::strerror(errno)));
  }
  pid_ = ::fork();
  if (pid_ == 0) keep_guard(pipe[0]);
  const int fork_error = errno;
  ::close(pipe[0]);
  fd_ = pipe[1];
  if (pid_ < 0) {
    ::close(fd_);
    throw Error(ErrorCode::kInternal, fmt::format("fork: {}", std::strerror(fork_error)));
  }
}

OrphanGuard::~OrphanGuard() {
  tell(fd_, kDismiss);
  ::close(fd_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void OrphanGuard::add_this_group(int fd) noexcept {
  tell(fd, ::getpid());
}

void OrphanGuard::remove(int pgid) {
  tell(fd_, -pgid);
}

void OrphanGuard::tell(int fd, int message) noexcept {
  [[maybe_unused]] const auto written = ::write(fd, &message, sizeof(message));
}

}  // namespace gradsync
