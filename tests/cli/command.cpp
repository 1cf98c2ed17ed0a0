#include "tests/cli/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/support/catch.hpp"

extern char** environ;

namespace gradsync::test {
namespace {

namespace fs = std::filesystem;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::chrono::minutes kLimit{10};  // instrumented simulations take their time
#else
constexpr std::chrono::minutes kLimit{2};
#endif
constexpr const char* kMark = "GRADSYNC_TEST_MARK";

/// The variables of a process, as it was started; empty if it is gone or a zombie.
std::string environment_of(pid_t pid) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  std::ostringstream text;
  text << '\0' << stream.rdbuf();
  return text.str();
}

bool has_variable(const std::string& environment, const std::string& name,
                  const std::string& value) {
  return environment.find('\0' + name + '=' + value + '\0') != std::string::npos;
}

std::vector<pid_t> marked_processes(const std::string& mark, const std::string& variable,
                                    const std::string& value) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    const std::string environment = environment_of(pid);
    if (has_variable(environment, kMark, mark) && has_variable(environment, variable, value)) {
      found.push_back(pid);
    }
  }
  return found;
}

std::vector<std::string> child_environment(const CommandOptions& options, const std::string& mark) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : options.env) variables[name] = value;
  variables[kMark] = mark;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Command::Command(const std::vector<std::string>& arguments, const CommandOptions& options)
    : deadline_(std::chrono::steady_clock::now() + kLimit) {
  static std::atomic<int> counter{0};
  mark_ = std::to_string(::getpid()) + "-" + std::to_string(++counter);

  std::vector<std::string> words = {options.program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = child_environment(options, mark_);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(variables);

  std::array<int, 2> out{}, err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe2 failed");
  }
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) {
    if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) ::_exit(127);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::execve(argv.front(), argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Command::~Command() {
  for (const pid_t pid : survivors()) ::kill(pid, SIGKILL);
  if (!reaped_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

bool Command::read_some() {
  if (out_ < 0 && err_ < 0) return false;
  std::array<pollfd, 2> fds = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline_ - std::chrono::steady_clock::now());
  if (left.count() <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left.count())) == 0) {
    FAIL("the command did not end in " << kLimit.count() << " minutes; it printed:\n"
                                       << result_.out << result_.err);
  }
  const auto read_stream = [](const pollfd& ready, int& fd, std::string& text) {
    if (ready.revents == 0) return;
    std::array<char, 65536> buffer;
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    } else {
      ::close(fd);
      fd = -1;
    }
  };
  read_stream(fds[0], out_, result_.out);
  read_stream(fds[1], err_, result_.err);
  return true;
}

bool Command::wait_for_output(const std::string& text) {
  while (result_.out.find(text) == std::string::npos) {
    if (!read_some()) return false;
  }
  return true;
}

std::vector<pid_t> Command::processes_with(const std::string& variable,
                                           const std::string& value) const {
  return marked_processes(mark_, variable, value);
}

CommandResult Command::wait() {
  while (read_some()) {
  }
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid failed");
  reaped_ = true;
  if (WIFEXITED(status)) result_.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
  return result_;
}

std::vector<pid_t> Command::survivors() const {
  return marked_processes(mark_, kMark, mark_);
}

bool Command::wait_until_alone() const {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!survivors().empty()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

CommandResult run_command(const std::vector<std::string>& arguments,
                          const CommandOptions& options) {
  Command command(arguments, options);
  CommandResult result = command.wait();
  CHECK(command.survivors().empty());
  return result;
}

}  // namespace gradsync::test
