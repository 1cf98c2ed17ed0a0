#pragma once

#include <string>
#include <vector>

#include "gradsync/ddp/ddp_options.hpp"
#include "gradsync/models/model.hpp"

namespace gradsync {

/// The part of a model that DDP looks after: everything but what it was told to ignore.
struct Replica {
  std::vector<ParameterPtr> trainable;
  std::vector<ParameterPtr> parameters;  ///< also those that are not trained

  /// Throws Error(kMisuse) if nothing is trained, or for a name to ignore that the model does not
  /// have.
  Replica(const Model& model, const DdpOptions& options, int rank);
};

/// The model's buffers, without those to ignore. Read them anew each time: a model may replace
/// them.
std::vector<BufferPtr> synchronised_buffers(const Model& model, const DdpOptions& options);

/// Everything on which ranks must agree for their collectives to meet, one line a thing.
std::vector<std::string> describe_replica(const Replica& replica,
                                          const std::vector<BufferPtr>& buffers,
                                          const DdpOptions& options);

}  // namespace gradsync
