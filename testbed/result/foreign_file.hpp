#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gradsync {

/// Describes a file of another tool, for the end of a sentence: "a Flight Recorder dump of PyTorch
/// (version 2.9)"; nullopt for an unknown format.
std::optional<std::string> describe_foreign_file(std::string_view content);

}  // namespace gradsync
