#include "tools/command/backend_registry.hpp"

#include <algorithm>

#include "gradsync/core/error.hpp"
#include "tools/command/backends.hpp"

namespace gradsync {
namespace {

std::string names() {
  std::string text;
  for (const Backend& backend : backends()) text += (text.empty() ? "" : ", ") + backend.name;
  return text;
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> list = {gloo_backend(), nccl_backend(), sim_backend()};
  return list;
}

const Backend& find_backend(const std::string& name) {
  const auto found = std::find_if(backends().begin(), backends().end(),
                                  [&](const Backend& backend) { return backend.name == name; });
  if (found == backends().end()) {
    throw Error(ErrorCode::kBackendUnavailable,
                "there is no backend \"" + name + "\"; there are " + names());
  }
  return *found;
}

const Backend& require_backend(const std::string& name) {
  const Backend& backend = find_backend(name);
  if (const std::string why_not = backend.why_not_here(); !why_not.empty()) {
    throw Error(ErrorCode::kBackendUnavailable, "the backend \"" + name + "\" is not available: " +
                                                    why_not + " (see gradsync backends)");
  }
  return backend;
}

}  // namespace gradsync
