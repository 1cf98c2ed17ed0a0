#pragma once

namespace gradsync {

/// The project's version, e.g. "0.1.0" (from CMakeLists.txt).
const char* version() noexcept;

}  // namespace gradsync
