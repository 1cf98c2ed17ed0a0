#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gradsync {

/// The whole of a file. Throws Error(kUsage) naming it when it cannot be read.
std::string read_file(const std::filesystem::path& file);

/// Writes a file so that a reader sees all of it or nothing: beside it, then renamed. Throws
/// Error(kUsage) naming it when it cannot be written.
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace gradsync
