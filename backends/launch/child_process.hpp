#pragma once

#include <map>
#include <string>
#include <vector>

namespace gradsync {

/// How to start a child process.
struct ChildProgram {
  std::string path;  ///< path of the executable, see find_program
  std::vector<std::string> args;
  std::map<std::string, std::string> env;  ///< the complete environment
  int stdout_fd = -1;                      ///< becomes the child's stdout; -1: inherit
  int stderr_fd = -1;
  int guard_fd = -1;  ///< fd of an OrphanGuard to register the group; -1: none
};

/// Resolves `program` like a shell: a name with a slash is a path, any other is searched in PATH.
/// Throws Error(kUsage) if it is not found.
std::string find_program(const std::string& program);

/// This process's environment.
std::map<std::string, std::string> current_environment();

/// Starts a program in its own session and process group, whose id is the returned pid. Its
/// standard input is empty, it inherits no other file descriptors, its signal handling is the
/// default, and the kernel kills it when the calling thread ends. Throws Error(kUsage) if the
/// program cannot be executed.
int start_child(const ChildProgram& program);

/// How a child ended; see waitid(2).
struct ChildEnd {
  int exit_code = 0;
  int signal = 0;  ///< 0 if it exited by itself
};

/// True once the child has ended. It stays a zombie until `reap_child`, so that its pid, which is
/// also its process group id, is not reused.
bool child_has_ended(int pid, ChildEnd& end);
void reap_child(int pid);

/// "signal 9 (Killed)"
std::string describe_signal(int signal);

}  // namespace gradsync
