#pragma once

#include <string>
#include <vector>

namespace gradsync {

/// A shared library that is opened when the program needs it, and stays open.
class SharedLibrary {
 public:
  /// Opens the first of `names` that there is. Throws Error(kBackendUnavailable) with the loader's
  /// words for each, and `what` for the name of the library.
  SharedLibrary(const std::string& what, const std::vector<std::string>& names);

  /// Null where the library does not have it.
  void* find(const char* symbol) const;

  /// `Function` is the type of the function, as decltype(&name) gives it.
  template <typename Function>
  Function function(const char* symbol) const {
    return reinterpret_cast<Function>(require(symbol));
  }
  template <typename Function>
  Function optional_function(const char* symbol) const {
    return reinterpret_cast<Function>(find(symbol));
  }

 private:
  /// Throws Error(kBackendUnavailable): the library is too old.
  void* require(const char* symbol) const;

  std::string what_;
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace gradsync
