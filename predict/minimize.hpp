#pragma once

#include <functional>
#include <vector>

namespace gradsync {

/// A positive number that is looked for between bounds, on a logarithmic scale.
struct BoundedNumber {
  double start = 1;
  double least = 0;  ///< positive; start is moved between the bounds
  double most = 0;
};

/// Minimises a function of a few positive numbers, which may have jumps and several valleys, with
/// about `evaluations` calls: NLopt's DIRECT-L over all of the box and Sbplx from the best point
/// so far. Deterministic; the answer is never worse than the start. Exceptions of the function pass
/// through.
std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& function,
                             const std::vector<BoundedNumber>& numbers, int evaluations = 160);

/// A sum that is least squares for small residuals and least absolutes for large ones (pseudo-Huber
/// beyond 10%): one wild measurement does not drag the others along.
///
/// Finds the coefficients c >= 0 of  sum_k c_k rows[i][k] = 1  that make it least (NLopt's SLSQP).
/// The columns may be of any scale.
struct RelativeFit {
  std::vector<double> coefficients;
  double cost = 0;                ///< about the sum of squared residuals
  std::vector<double> residuals;  ///< sum_k c_k rows[i][k] - 1
  std::vector<double> weights;    ///< of each row in the end: 1, or less for an outlier
};
RelativeFit fit_relative(const std::vector<std::vector<double>>& rows);

}  // namespace gradsync
