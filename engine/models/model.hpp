#pragma once

#include <memory>
#include <vector>

#include "gradsync/autograd/graph.hpp"
#include "gradsync/autograd/parameter.hpp"
#include "gradsync/data/batch.hpp"

namespace gradsync {

/// A trainable model. Implementations: TransformerModel (real compute), ReplayModel (replays a
/// measured profile), or your own. A model belongs to one rank.
class Model {
 public:
  virtual ~Model() = default;

  /// All parameters, trainable or not, in registration order (pre-order over modules); shared ones
  /// once.
  virtual const std::vector<ParameterPtr>& parameters() const = 0;
  virtual const std::vector<BufferPtr>& buffers() const = 0;

  /// Builds the outputs on `graph`. The first output is the loss, a float32 scalar.
  virtual std::vector<Variable> forward(const Batch& batch, Graph& graph) = 0;

  /// Time of the optimizer step for a replayed model; zero if the step is really computed.
  virtual Seconds replayed_optimizer_time() const { return Seconds{0}; }
};

}  // namespace gradsync
