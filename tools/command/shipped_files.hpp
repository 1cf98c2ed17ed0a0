#pragma once

#include <string>

namespace gradsync {

/// The file or folder that `path` means to a person: `path` itself where it exists, otherwise what
/// ships with gradsync under that name, with or without "scenarios/" in front and ".json" behind:
/// "quickstart", "hangs", "clusters/dgx-a100.json", "scenarios/validation". Returns `path`
/// unchanged if there is neither, so that the error of whoever reads it names what was typed.
std::string shipped_path(const std::string& path);

}  // namespace gradsync
