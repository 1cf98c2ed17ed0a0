#include "gradsync/core/name_pattern.hpp"

#include <fnmatch.h>

#include <string>

namespace gradsync {

bool matches(std::string_view pattern, std::string_view name) {
  return fnmatch(std::string(pattern).c_str(), std::string(name).c_str(), 0) == 0;
}

}  // namespace gradsync
