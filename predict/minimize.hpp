#pragma once

#include <functional>
#include <vector>

namespace gradsync {

/// Minimises a function of a few positive numbers whose scale is not known: golden sections along
/// one number after the other, on a logarithmic scale, over a factor of 30 in both directions at
/// first and a third of that in each further round. Deterministic; finds the least value of a
/// function with one valley, and a good one otherwise.
std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& function,
                             std::vector<double> start, int rounds = 5);

}  // namespace gradsync
