#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/paths.hpp"

namespace gradsync::test {

/// What a finished command left.
struct CommandResult {
  int exit_status = -1;  ///< -1 where a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
  nlohmann::ordered_json json() const { return nlohmann::ordered_json::parse(out); }
};

struct CommandOptions {
  std::string directory = {};                   ///< where it runs; empty: here
  std::map<std::string, std::string> env = {};  ///< over the test's environment
  std::string program = gradsync::test::command_path();
};

/// The built `gradsync` (or another program), under way. Every process that comes of it, through
/// whatever launcher, carries a mark in its environment, by which those that outlive it are found.
class Command {
 public:
  explicit Command(const std::vector<std::string>& arguments, const CommandOptions& options = {});
  /// Ends whatever is left of it.
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const noexcept { return pid_; }
  /// Blocks until standard output contains `text`; false if the command ended without it.
  bool wait_for_output(const std::string& text);
  /// The command's processes whose environment has `variable`=`value`, e.g. RANK=2.
  std::vector<pid_t> processes_with(const std::string& variable, const std::string& value) const;
  /// Blocks until the command has ended. A command that takes longer than some minutes is killed
  /// and fails the test: nothing here takes that long unless it hangs.
  CommandResult wait();
  /// Processes that are still there. Empty, if the command kept its promise.
  std::vector<pid_t> survivors() const;
  /// Blocks until there are no survivors; false if some are there after ten seconds. For a command
  /// that was killed: the kernel, and not the command, ends its children.
  bool wait_until_alone() const;

 private:
  bool read_some();  // false once both streams have ended

  std::string mark_;
  pid_t pid_ = -1;
  bool reaped_ = false;
  int out_ = -1;
  int err_ = -1;
  CommandResult result_;
  std::chrono::steady_clock::time_point deadline_;
};

/// Runs `gradsync` to its end, and fails the test if it leaves a process behind.
CommandResult run_command(const std::vector<std::string>& arguments,
                          const CommandOptions& options = {});

}  // namespace gradsync::test
