#pragma once

namespace gradsync {

/// Options of ReplayModel.
struct ReplayOptions {
  double compute_scale = 1.0;  ///< multiplies every time in the profile
  bool operator==(const ReplayOptions&) const = default;
};

}  // namespace gradsync
