#pragma once

#include <string>
#include <vector>

#include "gradsync/core/units.hpp"
#include "gradsync/predict/bench_table.hpp"

namespace gradsync {

/// An estimated number with the half-width of its 95% confidence interval.
struct Estimate {
  double value = 0;
  double margin = 0;
};

/// time = latency + bytes / rate, plus a bend for pipelined transfers, for sizes from `first` to
/// `last`.
struct FitSegment {
  Bytes first = 0;
  Bytes last = 0;
  int points = 0;
  Estimate latency;  ///< seconds
  Estimate seconds_per_byte;
  /// The bend: the cost of chunks if their number is optimal, i.e. proportional to sqrt(bytes). 0:
  /// a line. The intervals are those of a line.
  double seconds_per_root_byte = 0;
  double rms_residual = 0;    ///< relative to the measured time, root mean square
  double worst_residual = 0;  ///< relative, largest in magnitude, with its sign
};

/// A prediction from a fit.
struct FitPrediction {
  Seconds time{0};
  bool extrapolated = false;  ///< outside the measured sizes
};

/// The time of a collective as a function of size: one or more straight lines, the last of which
/// may bend.
///
/// Each line minimizes the sum of squared *relative* residuals (a microsecond matters at 1 KiB but
/// not at 1 GiB) with outliers downweighted (fit_relative in minimize.hpp). No coefficient is
/// negative: if the best line has one below zero, the fit is the best line with that coefficient
/// zero. Dynamic programming over all partitions with at least three sizes per line chooses where
/// lines start, and the Bayesian information criterion decides how many lines (at most four) there
/// are and whether there is a bend. Confidence intervals are those of weighted least squares with
/// Student's t.
///
/// A bend is a + b S + c sqrt(S): the time of a collective that splits S bytes into the optimal
/// number of chunks. Three sizes that are far apart determine it.
class PiecewiseFit {
 public:
  /// Rows in any order; with most_segments = 1, a line. Throws Error(kUsage) for fewer than three
  /// sizes or a non-positive time.
  explicit PiecewiseFit(const std::vector<BenchRow>& rows, int most_segments = 4);

  const std::vector<FitSegment>& segments() const noexcept { return segments_; }
  FitPrediction predict(Bytes bytes) const;
  /// Over all rows.
  double rms_residual() const noexcept { return rms_residual_; }
  double worst_residual() const noexcept { return worst_residual_; }

 private:
  std::vector<FitSegment> segments_;
  double rms_residual_ = 0;
  double worst_residual_ = 0;
};

/// The fit as text: one line per segment, and the residuals.
std::string describe(const PiecewiseFit& fit, int ranks);

}  // namespace gradsync
