#pragma once

#include <functional>
#include <vector>

namespace gradsync {

/// A positive unknown between bounds, searched on a logarithmic scale.
struct BoundedNumber {
  double start = 1;
  double least = 0;  ///< positive; start is clamped to the bounds
  double most = 0;
};

/// Minimizes a function of a few positive numbers, which may have jumps and several local minima,
/// in about `evaluations` calls: NLopt's DIRECT-L over the whole box, then Sbplx from the best
/// point. Deterministic; the result is never worse than the start. Exceptions of the function
/// propagate.
std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& function,
                             const std::vector<BoundedNumber>& numbers, int evaluations = 160);

/// Robust regression: a cost that is least squares for small residuals and least absolute
/// deviations for large ones (pseudo-Huber beyond 10%), so that a single bad measurement does not
/// distort the fit.
///
/// Finds the coefficients c >= 0 of  sum_k c_k rows[i][k] = 1  with the smallest cost (NLopt's
/// SLSQP). Columns may have any scale.
struct RelativeFit {
  std::vector<double> coefficients;
  double cost = 0;                ///< about the sum of squared residuals
  std::vector<double> residuals;  ///< sum_k c_k rows[i][k] - 1
  std::vector<double> weights;    ///< final weight of each row: 1, less for outliers
};
RelativeFit fit_relative(const std::vector<std::vector<double>>& rows);

}  // namespace gradsync
