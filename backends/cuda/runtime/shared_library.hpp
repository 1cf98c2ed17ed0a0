#pragma once

#include <string>
#include <vector>

namespace gradsync {

/// A shared library that is loaded on demand and never unloaded.
class SharedLibrary {
 public:
  /// Loads the first library of `names` that exists. Throws Error(kBackendUnavailable) with the
  /// loader's message for each name; `what` is the library's name in messages.
  SharedLibrary(const std::string& what, const std::vector<std::string>& names);

  /// Null if the library does not have the symbol.
  void* find(const char* symbol) const;

  /// `Function` is the function's type, as in decltype(&name).
  template <typename Function>
  Function function(const char* symbol) const {
    return reinterpret_cast<Function>(require(symbol));
  }
  template <typename Function>
  Function optional_function(const char* symbol) const {
    return reinterpret_cast<Function>(find(symbol));
  }

 private:
  /// Throws Error(kBackendUnavailable) if the symbol is missing: the library is too old.
  void* require(const char* symbol) const;

  std::string what_;
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace gradsync
