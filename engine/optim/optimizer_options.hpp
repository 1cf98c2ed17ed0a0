#pragma once

namespace gradsync {

/// Options of AdamW, with PyTorch's defaults.
struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
  bool operator==(const AdamWOptions&) const = default;
};

/// Options of Sgd, with PyTorch's defaults (lr 1e-3 since 2.2).
struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool operator==(const SgdOptions&) const = default;
};

}  // namespace gradsync
