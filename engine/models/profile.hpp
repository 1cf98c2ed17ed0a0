#pragma once

#include <string>
#include <vector>

#include "gradsync/core/units.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

struct ProfileParameter {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
  Seconds ready{0};  ///< from the start of backward until the gradient is ready
};

/// State that DDP broadcasts but that is not trained, e.g. the moments of a batch norm.
struct ProfileBuffer {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
};

/// The cost of one training step of a model on some machine: parameters in registration order, and
/// times. See docs/bring-your-model.md.
struct ModelProfile {
  std::string name;
  std::string source;      ///< origin of the numbers
  std::string confidence;  ///< "measured", "scaled" or "synthetic"
  Seconds forward_time{0};
  Seconds optimizer_time{0};
  std::vector<ProfileParameter> parameters;
  std::vector<ProfileBuffer> buffers;

  /// Indices of the parameters in the order in which their gradients become ready; ties in reverse
  /// registration order.
  std::vector<std::size_t> ready_order() const;
  std::int64_t parameter_count() const;
};

/// Reads a profile: JSON with the keys name, source, confidence, forward, optimizer (durations such
/// as "38.5ms"), parameters [{name, shape, dtype (default float32), ready}] and optionally buffers
/// [{name, shape, dtype}], whose dtype may also be int64. Throws ConfigError with file and JSON
/// pointer for the first error.
ModelProfile load_profile(const std::string& file);
/// Same, from JSON text; errors use `name` as the file name.
ModelProfile parse_profile(const std::string& text, const std::string& name);

}  // namespace gradsync
