#pragma once

#include <string_view>

namespace gradsync {

/// Whether `name` matches a shell pattern, in which "*" matches anything, "?" one character and
/// "[ab]" one of a set: "layers.0.*", "*.bias".
bool matches(std::string_view pattern, std::string_view name);

}  // namespace gradsync
