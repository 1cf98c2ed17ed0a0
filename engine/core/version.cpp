#include "gradsync/core/version.hpp"

namespace gradsync {

const char* version() noexcept {
  return GRADSYNC_VERSION;
}

}  // namespace gradsync
