#pragma once

#include <source_location>
#include <string>

namespace gradsync {

/// Where in the program something was called. A function that communicates takes it as its last
/// parameter, `const CallSite& site = std::source_location::current()`, and so notes its caller's
/// line. There is no default constructor: `{}` must not be taken for a place.
class CallSite {
 public:
  CallSite(const std::source_location& where) : where_(where) {}  // NOLINT: meant to convert
  static CallSite none() { return std::source_location(); }

  /// "train_loop.cpp:88": without the folders, which differ between machines. Empty for none() and
  /// for a line of the standard library, which calls the constructor of what std::make_unique
  /// makes.
  std::string text() const;

 private:
  std::source_location where_;
};

}  // namespace gradsync
