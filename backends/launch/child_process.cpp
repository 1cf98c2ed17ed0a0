#include "gradsync/backends/launch/child_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "gradsync/backends/launch/orphan_guard.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Runs between fork and exec: only async-signal-safe calls, because other threads of the launcher
/// may hold any lock. Does not return.
[[noreturn]] void become(const ChildProgram& program, char* const* argv, char* const* envp,
                         int error_fd, pid_t launcher) {
  ::setsid();
  // Register before the program runs and starts other processes: the launcher may die at any
  // moment.
  if (program.guard_fd >= 0) OrphanGuard::add_this_group(program.guard_fd);
  // The kernel kills this process when the launcher dies. The launcher may already be dead, so
  // check afterwards.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);

  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  if (program.stdout_fd >= 0) ::dup2(program.stdout_fd, STDOUT_FILENO);
  if (program.stderr_fd >= 0) ::dup2(program.stderr_fd, STDERR_FILENO);
  constexpr int kErrorFd = 3;
  if (error_fd != kErrorFd) ::dup2(error_fd, kErrorFd);
  ::fcntl(kErrorFd, F_SETFD, FD_CLOEXEC);
  ::close_range(kErrorFd + 1, ~0u, 0);

  ::execve(program.path.c_str(), argv, envp);
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(kErrorFd, &error, sizeof(error));
  ::_exit(127);
}

}  // namespace

std::string find_program(const std::string& program) {
  namespace fs = std::filesystem;
  const auto runnable = [](const fs::path& file) {
    return fs::is_regular_file(file) && ::access(file.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos) {
    if (runnable(program)) return program;
    throw Error(ErrorCode::kUsage, fmt::format("{} is not an executable file", program));
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / program;
    if (runnable(file)) return file;
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("program \"{}\" was not found in PATH; give its path", program));
}

std::map<std::string, std::string> current_environment() {
  std::map<std::string, std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) result[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return result;
}

int start_child(const ChildProgram& program) {
  std::vector<std::string> args{program.path};
  args.insert(args.end(), program.args.begin(), program.args.end());
  std::vector<std::string> env;
  env.reserve(program.env.size());
  for (const auto& [name, value] : program.env) env.push_back(fmt::format("{}={}", name, value));
  const std::vector<char*> argv = pointers(args);
  const std::vector<char*> envp = pointers(env);

  int error_pipe[2];
  if (::pipe2(error_pipe, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kInternal, fmt::format("pipe: {}", std::strerror(errno)));
  }
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become(program, argv.data(), envp.data(), error_pipe[1], launcher);
  }
  const int fork_error = errno;
  ::close(error_pipe[1]);
  int error = pid < 0 ? fork_error : 0;
  if (pid > 0) {
    // Returns 0 bytes when exec closes the pipe.
    while (::read(error_pipe[0], &error, sizeof(error)) < 0 && errno == EINTR) {
    }
  }
  ::close(error_pipe[0]);
  if (error == 0) return pid;
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  throw Error(ErrorCode::kUsage,
              fmt::format("cannot start {}: {}", program.path, std::strerror(error)));
}

bool child_has_ended(int pid, ChildEnd& end) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return false;
  }
  if (info.si_pid != pid) return false;
  end = info.si_code == CLD_EXITED ? ChildEnd{info.si_status, 0} : ChildEnd{0, info.si_status};
  return true;
}

void reap_child(int pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string describe_signal(int signal) {
  const char* text = ::sigdescr_np(signal);
  return fmt::format("signal {} ({})", signal, text == nullptr ? "unknown" : text);
}

}  // namespace gradsync
