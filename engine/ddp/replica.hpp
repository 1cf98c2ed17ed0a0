#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/autograd/parameter.hpp"
#include "gradsync/ddp/ddp_options.hpp"

namespace gradsync {

/// The part of a rank's parameters and buffers that DDP looks after: everything but what it was
/// told to ignore, in the given order.
struct Replica {
  std::vector<ParameterPtr> trainable;
  std::vector<ParameterPtr> parameters;  ///< also those that are not trained
  std::vector<BufferPtr> buffers;
  /// By position among the parameters that were given: the position in `trainable`, unset for one
  /// that is not trained or ignored.
  std::vector<std::optional<std::size_t>> trainable_index;

  /// Throws Error(kMisuse) if nothing is trained, or for a name to ignore that nothing has.
  Replica(const std::vector<ParameterPtr>& parameters, const std::vector<BufferPtr>& buffers,
          const DdpOptions& options, int rank);
};

/// Everything on which ranks must agree for their collectives to meet, one line a thing.
std::vector<std::string> describe_replica(const Replica& replica, const DdpOptions& options);

}  // namespace gradsync
