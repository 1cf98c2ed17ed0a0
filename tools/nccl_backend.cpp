#include "engine/core/version.hpp"
#include "tools/backends.hpp"

namespace gradsync {

Backend nccl_backend() {
  Backend backend;
  backend.name = "nccl";
  backend.why_not = std::string("gradsync ") + version() + " has no NCCL backend";
  return backend;
}

}  // namespace gradsync
