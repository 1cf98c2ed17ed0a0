#include "gradsync/predict/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <boost/math/distributions/students_t.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/minimize.hpp"

namespace gradsync {
namespace {

constexpr int kLeastPoints = 3;  // per segment

struct Point {
  double bytes;
  double time;
};

/// 97.5% quantile of Student's t.
double student_t(int degrees_of_freedom) {
  if (degrees_of_freedom < 1) return std::numeric_limits<double>::infinity();
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), 0.975);
}

/// The curve through some of the points with the smallest robust sum of relative residuals: a line,
/// or one with a bend, as pipelined transfers have.
class Curve {
 public:
  enum class Shape { kLine, kPipelined };

  Curve(const std::vector<Point>& points, std::size_t first, std::size_t count,
        Shape shape = Shape::kLine)
      : points_(points.data() + first), count_(count), shape_(shape) {
    std::vector<std::vector<double>> rows;
    for (std::size_t i = 0; i < count; ++i) {
      const auto [bytes, time] = points_[i];
      rows.push_back({1 / time, bytes / time});
      if (shape == Shape::kPipelined) rows.back().push_back(std::sqrt(bytes) / time);
    }
    fit_ = fit_relative(rows);
  }

  double residual(std::size_t i) const { return fit_.residuals[i]; }
  double cost() const { return fit_.cost; }
  std::size_t parameters() const { return fit_.coefficients.size(); }
  bool has_rate() const { return fit_.coefficients[1] > 0; }

  FitSegment segment() const {
    FitSegment segment;
    segment.first = static_cast<Bytes>(points_[0].bytes);
    segment.last = static_cast<Bytes>(points_[count_ - 1].bytes);
    segment.points = static_cast<int>(count_);
    segment.latency.value = fit_.coefficients[0];
    segment.seconds_per_byte.value = fit_.coefficients[1];
    if (shape_ == Shape::kPipelined) segment.seconds_per_root_byte = fit_.coefficients[2];
    set_margins(segment);
    double squares = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      squares += residual(i) * residual(i);
      if (std::abs(residual(i)) > std::abs(segment.worst_residual)) {
        segment.worst_residual = residual(i);
      }
    }
    segment.rms_residual = std::sqrt(squares / static_cast<double>(count_));
    return segment;
  }

 private:
  /// 95% intervals of a line's two coefficients, from the rows that are not outliers; the bend is
  /// treated as exact.
  void set_margins(FitSegment& segment) const {
    double sw = 0, swx = 0, swxx = 0;
    const double scale = points_[count_ - 1].bytes;  // keeps the determinant well conditioned
    for (std::size_t i = 0; i < count_; ++i) {
      const double w = fit_.weights[i] / (points_[i].time * points_[i].time);
      const double x = points_[i].bytes / scale;
      sw += w;
      swx += w * x;
      swxx += w * x * x;
    }
    const double determinant = sw * swxx - swx * swx;
    const int freedom = static_cast<int>(count_) - static_cast<int>(parameters());
    const double variance = fit_.cost / std::max(freedom, 1);
    const double t = student_t(freedom);
    segment.latency.margin = t * std::sqrt(variance * swxx / determinant);
    segment.seconds_per_byte.margin = t * std::sqrt(variance * sw / determinant) / scale;
  }

  const Point* points_;
  std::size_t count_;
  Shape shape_;
  RelativeFit fit_;
};

std::vector<Point> points_of(const std::vector<BenchRow>& rows) {
  std::vector<Point> points;
  for (const BenchRow& row : rows) {
    const double time = row.median.value_or(row.time).count();
    constexpr double kLeastSeconds = 1e-12, kMostSeconds = 1e9;
    if (!(time > kLeastSeconds && time < kMostSeconds)) {
      throw Error(
          ErrorCode::kUsage,
          fmt::format("{} bytes in {:g} s: nothing can be fitted to that", row.bytes, time));
    }
    points.push_back({static_cast<double>(row.bytes), time});
  }
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.bytes < b.bytes; });
  const auto same = [](const Point& a, const Point& b) { return a.bytes == b.bytes; };
  points.erase(std::unique(points.begin(), points.end(), same), points.end());
  if (points.size() < kLeastPoints) {
    throw Error(ErrorCode::kUsage, "a fit needs at least three sizes");
  }
  return points;
}

/// The best segment starts for each number of segments.
std::vector<std::vector<std::size_t>> best_partitions(const std::vector<Point>& points,
                                                      std::size_t most) {
  const std::size_t n = points.size();
  const double infinite = std::numeric_limits<double>::infinity();
  const auto least = static_cast<std::size_t>(kLeastPoints);
  // cost[k][end]: of the first `end` points in k + 1 segments; from[k][end]: start of the last.
  std::vector<std::vector<double>> cost(most, std::vector<double>(n + 1, infinite));
  std::vector<std::vector<std::size_t>> from(most, std::vector<std::size_t>(n + 1, 0));
  for (std::size_t end = least; end <= n; ++end) {
    cost[0][end] = Curve(points, 0, end).cost();
    for (std::size_t start = least; most > 1 && start + least <= end; ++start) {
      const double last = Curve(points, start, end - start).cost();
      for (std::size_t k = 1; k < most; ++k) {
        if (cost[k - 1][start] + last < cost[k][end]) {
          cost[k][end] = cost[k - 1][start] + last;
          from[k][end] = start;
        }
      }
    }
  }
  std::vector<std::vector<std::size_t>> partitions;
  for (std::size_t k = 0; k < most && std::isfinite(cost[k][n]); ++k) {
    std::vector<std::size_t> starts;
    std::size_t end = n;
    for (std::size_t j = k + 1; j-- > 0;) {
      starts.insert(starts.begin(), from[j][end]);
      end = from[j][end];
    }
    partitions.push_back(starts);
  }
  return partitions;
}

std::vector<Curve> lines_of(const std::vector<Point>& points,
                            const std::vector<std::size_t>& starts) {
  std::vector<Curve> lines;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const std::size_t end = k + 1 < starts.size() ? starts[k + 1] : points.size();
    lines.emplace_back(points, starts[k], end - starts[k]);
  }
  return lines;
}

/// Partitions that end in a bend, after at most one line.
std::vector<std::vector<Curve>> with_a_bend(const std::vector<Point>& points) {
  const auto least = static_cast<std::size_t>(kLeastPoints);
  std::vector<std::vector<Curve>> all;
  for (std::size_t start = 0; start + least <= points.size(); ++start) {
    if (start > 0 && start < least) continue;
    std::vector<Curve> curves;
    if (start > 0) curves.emplace_back(points, 0, start);
    curves.emplace_back(points, start, points.size() - start, Curve::Shape::kPipelined);
    // A bend alone would have an ever-growing bandwidth.
    if (curves.back().has_rate()) all.push_back(std::move(curves));
  }
  return all;
}

/// Bayesian information criterion of a partition: each curve costs its coefficients and its start.
double information(const std::vector<Curve>& curves, std::size_t points) {
  double sum = 0, numbers = -1;
  for (const Curve& curve : curves) {
    sum += curve.cost();
    numbers += static_cast<double>(curve.parameters()) + 1;
  }
  const auto n = static_cast<double>(points);
  // Measurements are accurate to 0.1% at best, so a line must not win by fitting a few points
  // exactly.
  const double variance = sum / n + 1e-6;
  return n * std::log(variance) + numbers * std::log(n);
}

}  // namespace

PiecewiseFit::PiecewiseFit(const std::vector<BenchRow>& rows, int most_segments) {
  const std::vector<Point> points = points_of(rows);
  std::vector<std::vector<Curve>> candidates;
  for (const auto& starts : best_partitions(points, static_cast<std::size_t>(most_segments))) {
    candidates.push_back(lines_of(points, starts));
  }
  if (most_segments > 1) {
    for (auto& curves : with_a_bend(points)) candidates.push_back(std::move(curves));
  }
  const auto& best =
      *std::min_element(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
        return information(a, points.size()) < information(b, points.size());
      });
  double squares = 0;
  for (const Curve& curve : best) {
    segments_.push_back(curve.segment());
    const FitSegment& segment = segments_.back();
    squares += segment.rms_residual * segment.rms_residual * segment.points;
    if (std::abs(segment.worst_residual) > std::abs(worst_residual_)) {
      worst_residual_ = segment.worst_residual;
    }
  }
  rms_residual_ = std::sqrt(squares / static_cast<double>(points.size()));
}

FitPrediction PiecewiseFit::predict(Bytes bytes) const {
  // Between two segments use the later one, which covers the large buckets.
  const FitSegment* segment = &segments_.front();
  for (const FitSegment& candidate : segments_) {
    segment = &candidate;
    if (bytes <= candidate.last) break;
  }
  const auto size = static_cast<double>(bytes);
  FitPrediction prediction;
  prediction.time = Seconds(segment->latency.value + size * segment->seconds_per_byte.value +
                            std::sqrt(size) * segment->seconds_per_root_byte);
  prediction.extrapolated = bytes < segments_.front().first || bytes > segments_.back().last;
  return prediction;
}

std::string describe(const PiecewiseFit& fit, int ranks) {
  std::string text =
      fmt::format("# {:>12}{:>14}{:>8}{:>22}{:>26}{:>10}{:>10}\n", "from (B)", "to (B)", "points",
                  "latency (us)", "busbw (GB/s)", "rms", "worst");
  for (const FitSegment& segment : fit.segments()) {
    const double factor = 2.0 * (ranks - 1) / ranks * 1e-9;
    const double slope = segment.seconds_per_byte.value;
    const double margin = segment.seconds_per_byte.margin;
    std::string bandwidth = "not visible in these sizes";
    if (slope > margin) {
      bandwidth = fmt::format("{:.3g} ({:.3g} to {:.3g})", factor / slope,
                              factor / (slope + margin), factor / (slope - margin));
    }
    const bool is_bent = segment.seconds_per_root_byte > 0;
    if (is_bent && slope > 0) bandwidth = fmt::format("{:.3g} in the end", factor / slope);
    const std::string latency = is_bent
                                    ? fmt::format("{:.4g}, bent", segment.latency.value * 1e6)
                                    : fmt::format("{:.4g} +- {:.2g}", segment.latency.value * 1e6,
                                                  segment.latency.margin * 1e6);
    text += fmt::format("  {:>12}{:>14}{:>8}{:>22}{:>26}{:>9.1f}%{:>+9.1f}%\n", segment.first,
                        segment.last, segment.points, latency, bandwidth,
                        segment.rms_residual * 100, segment.worst_residual * 100);
  }
  text += fmt::format("# residuals over all sizes: rms {:.1f}%, worst {:+.1f}%\n",
                      fit.rms_residual() * 100, fit.worst_residual() * 100);
  return text;
}

}  // namespace gradsync
