#pragma once

namespace gradsync {

/// Options of Join, under PyTorch's names and with its defaults.
struct JoinOptions {
  /// Divide gradients by the number of ranks (true) or by the number of ranks that still have
  /// inputs (false).
  bool divide_by_initial_world_size = true;
  bool enable = true;
  /// As soon as one rank runs out of inputs, stop all ranks at their next forward with an
  /// EarlyTermination.
  bool throw_on_early_termination = false;
  bool operator==(const JoinOptions&) const = default;
};

}  // namespace gradsync
