#pragma once

#include <string_view>

namespace gradsync {

/// Whether a name is meant by a pattern of the shell, in which "*" stands for anything, "?" for one
/// character and "[ab]" for one of a set: "layers.0.*", "*.bias".
bool matches(std::string_view pattern, std::string_view name);

}  // namespace gradsync
