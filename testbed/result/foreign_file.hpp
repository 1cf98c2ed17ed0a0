#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gradsync {

/// What a file of another tool is, as the end of a sentence: "a Flight Recorder dump of PyTorch
/// (version 2.9)"; nothing where it is none that is known.
std::optional<std::string> describe_foreign_file(std::string_view content);

}  // namespace gradsync
