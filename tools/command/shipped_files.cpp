#include "tools/command/shipped_files.hpp"

#include <filesystem>

namespace gradsync {

namespace fs = std::filesystem;

std::string shipped_path(const std::string& path) {
  std::error_code error;
  if (path.empty() || fs::path(path).is_absolute() || fs::exists(path, error)) return path;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return path;
  // Relative to the program, so that an install can be moved.
  const fs::path data = (program.parent_path() / GRADSYNC_DATA_FROM_PROGRAM).lexically_normal();
  for (const fs::path& folder : {data / "scenarios", data}) {
    for (const char* extension : {"", ".json"}) {
      const std::string file = (folder / path).lexically_normal().string() + extension;
      if (fs::exists(file, error)) return file;
    }
  }
  return path;
}

}  // namespace gradsync
