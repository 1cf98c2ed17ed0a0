#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gradsync {

/// The whole content of a file. Throws Error(kUsage) naming the file if it cannot be read.
std::string read_file(const std::filesystem::path& file);

/// Writes a file atomically: to a temporary file beside it, which is then renamed. Throws
/// Error(kUsage) naming the file if it cannot be written.
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace gradsync
