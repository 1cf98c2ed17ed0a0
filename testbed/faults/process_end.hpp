#pragma once

namespace gradsync {

/// How a process ends without a word: by `signal`, or with `exit_code` where that is 0. In the
/// simulator it is thrown through the rank, which has no process of its own; it is no
/// std::exception, so nothing that handles errors takes it for one.
struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;
};

}  // namespace gradsync
