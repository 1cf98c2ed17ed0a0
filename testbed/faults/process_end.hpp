#pragma once

namespace gradsync {

/// A process that ends without a word: by `signal`, or with `exit_code` if that is 0. In the
/// simulator, where a rank has no process, it is thrown through the rank. It is not a
/// std::exception, so error handlers do not catch it.
struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;
};

}  // namespace gradsync
