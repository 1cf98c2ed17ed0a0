#include "gradsync/tensor/named_tensors.hpp"

#include <algorithm>

#include "gradsync/core/error.hpp"

namespace gradsync {

NamedTensors::NamedTensors(std::initializer_list<Entry> entries) {
  for (const auto& [name, tensor] : entries) {
    if (contains(name)) {
      throw Error(ErrorCode::kMisuse, "two tensors have the name \"" + name + "\"");
    }
    set(name, tensor);
  }
}

const Tensor* NamedTensors::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(entries_, name, &Entry::first);
  return found == entries_.end() ? nullptr : &found->second;
}

void NamedTensors::set(std::string_view name, Tensor tensor) {
  const auto found = std::ranges::find(entries_, name, &Entry::first);
  if (found != entries_.end()) {
    found->second = std::move(tensor);
  } else {
    entries_.emplace_back(name, std::move(tensor));
  }
}

const Tensor& NamedTensors::at(std::string_view name) const {
  if (const Tensor* found = find(name)) return *found;
  std::string names;
  for (const auto& [other, tensor] : entries_) {
    names += (names.empty() ? "\"" : ", \"") + other + "\"";
  }
  throw Error(ErrorCode::kMisuse, "there is no tensor \"" + std::string(name) + "\", " +
                                      (names.empty() ? "nor any other" : "only " + names));
}

}  // namespace gradsync
