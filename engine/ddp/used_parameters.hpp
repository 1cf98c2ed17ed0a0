#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradsync/comm/process_group.hpp"

namespace gradsync {

/// Tracks the parameters that took part in backward, on this rank and on any rank: PyTorch's
/// local_used_map. Only find_unused_parameters and static_graph need it, to tell a zero gradient,
/// which is reduced and stepped, from no gradient on any rank, which leaves `grad` unchanged.
class UsedParameters {
 public:
  UsedParameters(std::size_t count, Device& device);

  void mark(std::size_t parameter) { used_[parameter] = 1; }
  bool is_marked(std::size_t parameter) const { return used_[parameter] != 0; }

  /// Starts the all-reduce (SUM) of the marks, one int32 per parameter.
  void launch(ProcessGroup& group, const CollectiveOptions& options);
  /// Takes part in the all-reduce on behalf of a joined rank: sends the marks of its last
  /// iteration, as PyTorch does, and ignores the result.
  void shadow(ProcessGroup& group, const CollectiveOptions& options);

  /// Whether any rank used the parameter, after `launch`. Waits for the all-reduce only if this
  /// rank did not use it.
  bool is_used_anywhere(std::size_t parameter);
  /// Waits for the all-reduce, if one is in flight.
  void finish();
  void clear();

 private:
  std::vector<std::int32_t> used_;  // marks of this rank; after `finish`, of all ranks
  Tensor reduced_;
  WorkPtr work_;
};

}  // namespace gradsync
