#pragma once

#include <map>
#include <string>
#include <vector>

namespace gradsync {

/// What a child is started with.
struct ChildProgram {
  std::string path;  ///< of an executable file, see find_program
  std::vector<std::string> args;
  std::map<std::string, std::string> env;  ///< complete
  int stdout_fd = -1;                      ///< becomes the child's stream; -1: inherited
  int stderr_fd = -1;
  int guard_fd = -1;  ///< of an OrphanGuard, which learns of the child's group here; -1: none
};

/// The file that a shell would run for `program`: itself where it has a slash, else from PATH.
/// Throws Error(kUsage) if there is none.
std::string find_program(const std::string& program);

/// This process's environment.
std::map<std::string, std::string> current_environment();

/// Starts a program in a session (and process group) of its own, whose id is the returned process
/// id. Its standard input is empty, no other file descriptors are inherited, signals are as in a
/// fresh process, and the kernel kills it when the thread that called this ends. Throws
/// Error(kUsage) when the program cannot be executed.
int start_child(const ChildProgram& program);

/// How a child ended; see waitid(2).
struct ChildEnd {
  int exit_code = 0;
  int signal = 0;  ///< 0 where it ended by itself
};

/// True once the child has ended. It stays a zombie, so that its id, which is also its group's, is
/// not given to another process before `reap_child`.
bool child_has_ended(int pid, ChildEnd& end);
void reap_child(int pid);

/// "signal 9 (Killed)"
std::string describe_signal(int signal);

}  // namespace gradsync
