#pragma once

#include <string>
#include <vector>

#include "gradsync/core/units.hpp"
#include "gradsync/predict/bench_table.hpp"

namespace gradsync {

/// A number that was estimated, with half the width of its 95% confidence interval.
struct Estimate {
  double value = 0;
  double margin = 0;
};

/// time = latency + bytes / rate, with a bend where transfers are pipelined, for sizes from `first`
/// to `last`.
struct FitSegment {
  Bytes first = 0;
  Bytes last = 0;
  int points = 0;
  Estimate latency;  ///< seconds
  Estimate seconds_per_byte;
  /// The bend: what chunks cost of which there are as many as is best, sqrt(bytes) of them. 0: a
  /// line. The intervals are those of lines.
  double seconds_per_root_byte = 0;
  double rms_residual = 0;    ///< relative to the measured time, root mean square
  double worst_residual = 0;  ///< relative, largest in magnitude, with its sign
};

/// A prediction from a fit.
struct FitPrediction {
  Seconds time{0};
  bool extrapolated = false;  ///< outside of the sizes that were measured
};

/// The time of a collective over sizes, as one or more straight lines, of which the last may bend.
///
/// Each minimises the sum of squared *relative* residuals (a microsecond matters at 1 KiB and not
/// at 1 GiB), in which outliers count less (fit_relative in minimize.hpp). No coefficient is
/// negative: where the best line would have one below zero, it is the best line with that one
/// zero. Where a line ends and the next begins is chosen by dynamic programming over all partitions
/// with at least three sizes a line, and how many lines (four at the most) or whether there is a
/// bend by the Bayesian information criterion: all further numbers have to pay for themselves.
/// Confidence intervals are those of weighted least squares with Student's t.
///
/// A bend is a + b S + c sqrt(S): the time of a collective that cuts S bytes into as many chunks as
/// is best. Three sizes, far apart, determine it.
class PiecewiseFit {
 public:
  /// Rows in any order; with one segment at the most, a line. Throws Error(kUsage) for fewer than
  /// three sizes or a time that is not positive.
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

/// What a fit says, for a person: a line a segment, and residuals.
std::string describe(const PiecewiseFit& fit, int ranks);

}  // namespace gradsync
