#include "gradsync/backends/cuda/runtime/shared_library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {

SharedLibrary::SharedLibrary(const std::string& what, const std::vector<std::string>& names)
    : what_(what) {
  std::string reasons;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      path_ = name;
      return;
    }
    const char* const reason = ::dlerror();
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason == nullptr ? name : reason);
  }
  throw Error(ErrorCode::kBackendUnavailable,
              fmt::format("{} cannot be opened: {}", what, reasons));
}

void* SharedLibrary::find(const char* symbol) const {
  return ::dlsym(handle_, symbol);
}

void* SharedLibrary::require(const char* symbol) const {
  void* const address = find(symbol);
  if (address == nullptr) {
    throw Error(ErrorCode::kBackendUnavailable,
                fmt::format("{} ({}) has no {}: it is too old", what_, path_, symbol));
  }
  return address;
}

}  // namespace gradsync
