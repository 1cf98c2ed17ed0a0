#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradsync/comm/process_group.hpp"

namespace gradsync {

/// Which parameters took part in backward, on this rank and on any: PyTorch's local_used_map. Only
/// find_unused_parameters and static_graph need it; they must tell a gradient of zeros, which is
/// reduced and stepped, from no gradient on any rank, which leaves `grad` as it was.
class UsedParameters {
 public:
  UsedParameters(std::size_t count, Device& device);

  void mark(std::size_t parameter) { used_[parameter] = 1; }
  bool is_marked(std::size_t parameter) const { return used_[parameter] != 0; }

  /// Starts the all-reduce (SUM) of the marks, one int32 a parameter.
  void launch(ProcessGroup& group, const CollectiveOptions& options);
  /// The part of a joined rank in the others' all-reduce: it sends what the last one left, as
  /// PyTorch does, and takes no notice of the result.
  void shadow(ProcessGroup& group, const CollectiveOptions& options);

  /// Whether any rank used it, after `launch`. Waits for the all-reduce only if this rank did not.
  bool is_used_anywhere(std::size_t parameter);
  /// Waits for the all-reduce, if one is under way.
  void finish();
  void clear();

 private:
  std::vector<std::int32_t> used_;  // marks of this rank; once finished, of all ranks
  Tensor reduced_;
  WorkPtr work_;
};

}  // namespace gradsync
