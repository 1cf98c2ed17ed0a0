#pragma once

#include <string>

namespace gradsync {

/// A source location in the user's program. A function that communicates takes its caller's
/// location as its last parameter: `const CallSite& site = CallSite(__builtin_FILE(),
/// __builtin_LINE())`. (std::source_location would do the same, but clang-tidy 14 cannot parse it.)
/// There is no default constructor, so that `{}` is never mistaken for a location.
class CallSite {
 public:
  /// `file` must outlive the object; pass a literal.
  CallSite(const char* file, int line) : file_(file), line_(line) {}
  static CallSite none() { return {"", 0}; }

  /// "train_loop.cpp:88", without folders, which differ between machines. Empty for none() and for
  /// a line in the standard library (as when std::make_unique calls the constructor).
  std::string text() const;

 private:
  const char* file_;
  int line_;
};

}  // namespace gradsync
