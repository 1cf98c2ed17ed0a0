#include "gradsync/predict/minimize.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <stdexcept>

#include <nlopt.hpp>

namespace gradsync {
namespace {

/// The function called by NLopt: converts from logarithms, and keeps the best point and the first
/// exception.
class LogarithmicFunction {
 public:
  LogarithmicFunction(const std::function<double(const std::vector<double>&)>& function,
                      const std::vector<double>& start)
      : function_(function), best_(start), least_(function(start)) {}

  double operator()(const std::vector<double>& logarithms, nlopt::opt& search) {
    std::vector<double> values;
    for (const double logarithm : logarithms) values.push_back(std::exp(logarithm));
    try {
      const double value = function_(values);
      if (value < least_) {
        least_ = value;
        best_ = values;
      }
      return std::isfinite(value) ? value : std::numeric_limits<double>::max();
    } catch (...) {
      error_ = std::current_exception();
      search.force_stop();
      return std::numeric_limits<double>::max();
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }
  const std::vector<double>& best() const { return best_; }

 private:
  const std::function<double(const std::vector<double>&)>& function_;
  std::vector<double> best_;
  double least_;
  std::exception_ptr error_;
};

struct Call {
  LogarithmicFunction* function;
  nlopt::opt* search;
};

double call(const std::vector<double>& x, std::vector<double>&, void* data) {
  const auto* target = static_cast<const Call*>(data);
  return (*target->function)(x, *target->search);
}

void search(nlopt::algorithm algorithm, LogarithmicFunction& function,
            const std::vector<BoundedNumber>& numbers, int evaluations) {
  nlopt::opt search(algorithm, static_cast<unsigned>(numbers.size()));
  std::vector<double> least, most, from, step;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    least.push_back(std::log(numbers[i].least));
    most.push_back(std::log(numbers[i].most));
    from.push_back(std::clamp(std::log(function.best()[i]), least[i], most[i]));
    step.push_back(std::min(0.3, (most[i] - least[i]) / 4));
  }
  Call target{&function, &search};
  search.set_min_objective(call, &target);
  search.set_lower_bounds(least);
  search.set_upper_bounds(most);
  search.set_initial_step(step);
  search.set_maxeval(evaluations);
  search.set_xtol_abs(1e-4);
  double value = 0;
  try {
    search.optimize(from, value);
  } catch (const nlopt::forced_stop&) {
    function.rethrow();
  } catch (const std::runtime_error&) {
    // Stopped by rounding errors; the best point was kept.
  }
}

constexpr double kOutlier = 0.1;

/// The residual at which pseudo-Huber halves the weight of least squares.
double pseudo_huber(double residual) {
  const double scaled = residual / kOutlier;
  return 2 * kOutlier * kOutlier * (std::sqrt(1 + scaled * scaled) - 1);
}

double weight_of(double residual) {
  const double scaled = residual / kOutlier;
  return 1 / std::sqrt(1 + scaled * scaled);
}

double relative_cost(const std::vector<double>& coefficients, std::vector<double>& gradient,
                     void* data) {
  const auto& rows = *static_cast<const std::vector<std::vector<double>>*>(data);
  std::fill(gradient.begin(), gradient.end(), 0);
  double cost = 0;
  for (const std::vector<double>& row : rows) {
    double residual = -1;
    for (std::size_t k = 0; k < row.size(); ++k) residual += coefficients[k] * row[k];
    cost += pseudo_huber(residual);
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      gradient[k] += 2 * residual * weight_of(residual) * row[k];
    }
  }
  return cost;
}

}  // namespace

std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& function,
                             const std::vector<BoundedNumber>& numbers, int evaluations) {
  std::vector<double> start;
  for (const BoundedNumber& number : numbers) {
    start.push_back(std::clamp(number.start, number.least, number.most));
  }
  LogarithmicFunction logarithmic(function, start);
  search(nlopt::GN_DIRECT_L, logarithmic, numbers, evaluations / 2);
  search(nlopt::LN_SBPLX, logarithmic, numbers, evaluations / 2);
  return logarithmic.best();
}

RelativeFit fit_relative(const std::vector<std::vector<double>>& rows) {
  const std::size_t width = rows.front().size();
  std::vector<double> scale(width, 0);
  for (const auto& row : rows) {
    for (std::size_t k = 0; k < width; ++k) scale[k] = std::max(scale[k], row[k]);
  }
  std::vector<std::vector<double>> scaled = rows;
  for (auto& row : scaled) {
    for (std::size_t k = 0; k < width; ++k) row[k] /= scale[k];
  }
  nlopt::opt search(nlopt::LD_SLSQP, static_cast<unsigned>(width));
  search.set_min_objective(relative_cost, &scaled);
  search.set_lower_bounds(0);
  search.set_maxeval(400);
  search.set_xtol_rel(1e-12);
  RelativeFit fit;
  fit.coefficients.assign(width, 1.0 / static_cast<double>(width));
  try {
    double ignored = 0;
    search.optimize(fit.coefficients, ignored);
  } catch (const std::runtime_error&) {
    // SLSQP may report failure when rounding prevents progress; its result is then the best so far.
  }
  for (const auto& row : scaled) {
    double residual = -1;
    for (std::size_t k = 0; k < width; ++k) residual += fit.coefficients[k] * row[k];
    fit.cost += pseudo_huber(residual);
    fit.residuals.push_back(residual);
    fit.weights.push_back(weight_of(residual));
  }
  for (std::size_t k = 0; k < width; ++k) fit.coefficients[k] /= scale[k];
  return fit;
}

}  // namespace gradsync
