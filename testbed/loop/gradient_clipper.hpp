#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gradsync/autograd/parameter.hpp"
#include "gradsync/ddp/loop_position.hpp"
#include "gradsync/tensor/host_read.hpp"

namespace gradsync {

/// How the gradients of a step were clipped.
struct Clipping {
  double max_norm = 0;
  /// The norm of the gradients before clipping, being read from the device; null if no parameter
  /// has a gradient.
  std::shared_ptr<HostRead> norm;
  /// The norm used for the clip coefficient, if it is not that of the gradients.
  std::optional<double> other_norm;
};

/// min(1, max_norm / norm), computed like clip_grad_norm.
double clip_coefficient(double norm, double max_norm);

/// Clips the gradients of a step with clip_grad_norm, if the job clips.
///
/// One of the loop's parts: a subclass may clip differently.
class GradientClipper {
 public:
  struct Options {
    std::optional<double> max_norm;  ///< unset: no clipping
    double norm_type = 2;
    bool error_if_nonfinite = false;
  };

  /// `parameters` must outlive it.
  GradientClipper(const std::vector<ParameterPtr>& parameters, const Options& options)
      : parameters_(&parameters), options_(options) {}
  virtual ~GradientClipper() = default;

  /// Returns nullopt if the job does not clip. The host does not wait, except for
  /// `error_if_nonfinite`.
  virtual std::optional<Clipping> clip(const LoopPosition& at);

 protected:
  const std::vector<ParameterPtr>& parameters() const noexcept { return *parameters_; }
  const Options& options() const noexcept { return options_; }
  Clipping clip_to(double max_norm) const;

 private:
  const std::vector<ParameterPtr>* parameters_;
  Options options_;
};

}  // namespace gradsync
