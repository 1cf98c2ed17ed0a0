#pragma once

#include <filesystem>
#include <string>

namespace gradsync {

/// A folder of the caller's own below the system's temporary one, removed with all that is in it.
class ScratchDirectory {
 public:
  /// Throws Error(kUsage) when it cannot be made.
  explicit ScratchDirectory(const std::string& name);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace gradsync
