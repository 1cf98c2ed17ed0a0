#pragma once

#include <string>

namespace gradsync {

/// Where in the program something was called. A function that communicates takes it as its last
/// parameter, `const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE())`, and so notes
/// its caller's line. (std::source_location is the same, but clang-tidy 14 cannot read it.) There
/// is no default constructor: `{}` must not be taken for a place.
class CallSite {
 public:
  /// `file` must outlive it: a literal.
  CallSite(const char* file, int line) : file_(file), line_(line) {}
  static CallSite none() { return {"", 0}; }

  /// "train_loop.cpp:88": without the folders, which differ between machines. Empty for none() and
  /// for a line of the standard library, which calls the constructor of what std::make_unique
  /// makes.
  std::string text() const;

 private:
  const char* file_;
  int line_;
};

}  // namespace gradsync
