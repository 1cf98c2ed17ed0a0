#include "tools/command/scratch_directory.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "gradsync/core/error.hpp"

namespace gradsync {

ScratchDirectory::ScratchDirectory(const std::string& name) {
  std::string pattern = (std::filesystem::temp_directory_path() / (name + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw Error(ErrorCode::kUsage, "cannot make a temporary folder " + pattern + ": " +
                                       std::strerror(errno) + " (TMPDIR says where)");
  }
  path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace gradsync
