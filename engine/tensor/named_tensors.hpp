#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

/// A few tensors by name, in the order in which they were set. As a Tensor: belongs to one rank,
/// and copies share the bytes.
class NamedTensors {
 public:
  using Entry = std::pair<std::string, Tensor>;

  NamedTensors() = default;
  /// Throws Error(kMisuse) for a name that is there twice.
  NamedTensors(std::initializer_list<Entry> entries);

  /// Adds the tensor, or replaces the one of this name in its place.
  void set(std::string_view name, Tensor tensor);
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }
  /// Throws Error(kMisuse) for a name that is not there, listing those that are.
  const Tensor& at(std::string_view name) const;

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  std::vector<Entry>::const_iterator begin() const noexcept { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const noexcept { return entries_.end(); }

 private:
  const Tensor* find(std::string_view name) const noexcept;

  std::vector<Entry> entries_;
};

}  // namespace gradsync
