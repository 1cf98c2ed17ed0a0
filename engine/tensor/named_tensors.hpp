#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

/// A small ordered map of tensors by name, in insertion order. Like Tensor, it belongs to one rank,
/// and copies share the data.
class NamedTensors {
 public:
  using Entry = std::pair<std::string, Tensor>;

  NamedTensors() = default;
  /// Throws Error(kMisuse) for a duplicate name.
  NamedTensors(std::initializer_list<Entry> entries);

  /// Adds the tensor, or replaces the one with this name in place.
  void set(std::string_view name, Tensor tensor);
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }
  /// Throws Error(kMisuse) for an unknown name, listing the known ones.
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
