#include "gradsync/core/call_site.hpp"

#include <string_view>

#include <fmt/format.h>

namespace gradsync {

std::string CallSite::text() const {
  const std::string_view file = file_;
  if (line_ == 0 || file.find("/c++/") != std::string_view::npos) return {};
  return fmt::format("{}:{}", file.substr(file.find_last_of('/') + 1), line_);
}

}  // namespace gradsync
