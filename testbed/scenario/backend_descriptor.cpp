#include "gradsync/testbed/scenario/backend_descriptor.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gradsync/core/error.hpp"

namespace gradsync {

const std::vector<BackendDescriptor>& backend_descriptors() {
  static const std::vector<BackendDescriptor> list = {
      {.name = "gloo",
       .summary = "real training on CPUs: one process per rank, Gloo over TCP",
       .chooses_addresses = true},
      {.name = "nccl",
       .summary = "real training on GPUs: one process per GPU, NCCL",
       .averages = true},
      {.name = "sim",
       .summary = "the same engine on simulated ranks and links (SimGrid), in one process",
       .is_simulated = true,
       .changes_links = true,
       .has_device_slots = true,
       .chooses_addresses = true},
  };
  return list;
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const BackendDescriptor& backend : backend_descriptors()) names.push_back(backend.name);
  return names;
}

const BackendDescriptor& backend_descriptor(const std::string& name) {
  const auto& list = backend_descriptors();
  const auto found = std::find_if(list.begin(), list.end(), [&](const BackendDescriptor& backend) {
    return backend.name == name;
  });
  if (found == list.end()) {
    throw Error(ErrorCode::kBackendUnavailable,
                fmt::format("there is no backend \"{}\"; there are {}", name,
                            fmt::join(backend_names(), ", ")));
  }
  return *found;
}

}  // namespace gradsync
