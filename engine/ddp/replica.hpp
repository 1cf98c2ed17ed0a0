#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/autograd/parameter.hpp"
#include "gradsync/ddp/ddp_options.hpp"

namespace gradsync {

/// The parameters and buffers of a rank that DDP manages: all except the ignored ones, in the given
/// order.
struct Replica {
  std::vector<ParameterPtr> trainable;
  std::vector<ParameterPtr> parameters;  ///< including those that are not trained
  std::vector<BufferPtr> buffers;
  /// For each parameter passed to the constructor, its index in `trainable`; unset if it is ignored
  /// or not trained.
  std::vector<std::optional<std::size_t>> trainable_index;

  /// Throws Error(kMisuse) if no parameter is trained, or if an ignored name does not exist.
  Replica(const std::vector<ParameterPtr>& parameters, const std::vector<BufferPtr>& buffers,
          const DdpOptions& options, int rank);
};

/// Everything that must be equal on all ranks for their collectives to match, one line per item.
std::vector<std::string> describe_replica(const Replica& replica, const DdpOptions& options);

}  // namespace gradsync
