#pragma once

#include <filesystem>
#include <string>

namespace gradsync {

/// A private folder in the system's temporary directory, removed with its contents.
class ScratchDirectory {
 public:
  /// Throws Error(kUsage) if it cannot be created.
  explicit ScratchDirectory(const std::string& name);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace gradsync
