#include "gradsync/predict/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

constexpr int kLeastPoints = 3;  // of a segment

struct Point {
  double bytes;
  double time;
};

/// 97.5% quantile of Student's t.
double student_t(int degrees_of_freedom) {
  static constexpr std::array<double, 10> kTable{12.706, 4.303, 3.182, 2.776, 2.571,
                                                 2.447,  2.365, 2.306, 2.262, 2.228};
  if (degrees_of_freedom < 1) return std::numeric_limits<double>::infinity();
  if (degrees_of_freedom <= 10) return kTable[static_cast<std::size_t>(degrees_of_freedom) - 1];
  // Cornish-Fisher's first term: within 0.5% from 10 degrees of freedom on.
  return 1.96 + 2.3723 / degrees_of_freedom;
}

/// The line with the least sum of squared relative residuals.
class Line {
 public:
  explicit Line(const std::vector<Point>& points, std::size_t first, std::size_t count)
      : points_(points.data() + first), count_(count) {
    // Weights 1/time^2. Sizes are scaled so that the normal equations stay well conditioned.
    scale_ = points_[count - 1].bytes;
    for (std::size_t i = 0; i < count; ++i) {
      const double w = 1 / (points_[i].time * points_[i].time);
      const double x = points_[i].bytes / scale_;
      sw_ += w;
      swx_ += w * x;
      swxx_ += w * x * x;
      swy_ += w * points_[i].time;
      swxy_ += w * x * points_[i].time;
    }
    determinant_ = sw_ * swxx_ - swx_ * swx_;
    latency_ = (swxx_ * swy_ - swx_ * swxy_) / determinant_;
    slope_ = (sw_ * swxy_ - swx_ * swy_) / determinant_;
    if (latency_ < 0) {
      latency_ = 0;
      slope_ = swxy_ / swxx_;
    } else if (slope_ < 0) {
      slope_ = 0;
      latency_ = swy_ / sw_;
    }
    for (std::size_t i = 0; i < count; ++i) sum_of_squares_ += std::pow(residual(i), 2);
  }

  double at(double bytes) const { return latency_ + slope_ * bytes / scale_; }
  double residual(std::size_t i) const { return at(points_[i].bytes) / points_[i].time - 1; }
  double sum_of_squares() const { return sum_of_squares_; }

  FitSegment segment() const {
    FitSegment segment;
    segment.first = static_cast<Bytes>(points_[0].bytes);
    segment.last = static_cast<Bytes>(points_[count_ - 1].bytes);
    segment.points = static_cast<int>(count_);
    const int freedom = segment.points - 2;
    const double variance = sum_of_squares_ / std::max(freedom, 1);
    const double t = student_t(freedom);
    segment.latency = {latency_, t * std::sqrt(variance * swxx_ / determinant_)};
    segment.seconds_per_byte = {slope_ / scale_,
                                t * std::sqrt(variance * sw_ / determinant_) / scale_};
    segment.rms_residual = std::sqrt(sum_of_squares_ / static_cast<double>(count_));
    for (std::size_t i = 0; i < count_; ++i) {
      if (std::abs(residual(i)) > std::abs(segment.worst_residual)) {
        segment.worst_residual = residual(i);
      }
    }
    return segment;
  }

 private:
  const Point* points_;
  std::size_t count_;
  double scale_ = 1;
  double sw_ = 0, swx_ = 0, swxx_ = 0, swy_ = 0, swxy_ = 0, determinant_ = 0;
  double latency_ = 0, slope_ = 0, sum_of_squares_ = 0;
};

std::vector<Point> points_of(const std::vector<BenchRow>& rows) {
  std::vector<Point> points;
  for (const BenchRow& row : rows) {
    const double time = row.median.value_or(row.time).count();
    if (!(time > 0)) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("the time of {} bytes is not positive: nothing can be fitted to it",
                              row.bytes));
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

/// For each number of segments the best starts of the segments.
std::vector<std::vector<std::size_t>> best_partitions(const std::vector<Point>& points,
                                                      std::size_t most) {
  const std::size_t n = points.size();
  const double infinite = std::numeric_limits<double>::infinity();
  const auto least = static_cast<std::size_t>(kLeastPoints);
  // cost[k][end]: of the first `end` points in k + 1 segments; from[k][end]: start of the last.
  std::vector<std::vector<double>> cost(most, std::vector<double>(n + 1, infinite));
  std::vector<std::vector<std::size_t>> from(most, std::vector<std::size_t>(n + 1, 0));
  for (std::size_t end = least; end <= n; ++end) {
    cost[0][end] = Line(points, 0, end).sum_of_squares();
    for (std::size_t start = least; start + least <= end; ++start) {
      const double last = Line(points, start, end - start).sum_of_squares();
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

std::vector<Line> lines_of(const std::vector<Point>& points,
                           const std::vector<std::size_t>& starts) {
  std::vector<Line> lines;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const std::size_t end = k + 1 < starts.size() ? starts[k + 1] : points.size();
    lines.emplace_back(points, starts[k], end - starts[k]);
  }
  return lines;
}

/// Bayesian information criterion of a partition into lines: a line has two numbers and a start.
double information(const std::vector<Line>& lines, std::size_t points) {
  double sum = 0;
  for (const Line& line : lines) sum += line.sum_of_squares();
  const auto n = static_cast<double>(points);
  // Nothing is measured to better than one in a thousand: a line through a few points may not win
  // by going through them exactly.
  const double variance = sum / n + 1e-6;
  return n * std::log(variance) + (3.0 * static_cast<double>(lines.size()) - 1) * std::log(n);
}

}  // namespace

PiecewiseFit::PiecewiseFit(const std::vector<BenchRow>& rows, int most_segments) {
  const std::vector<Point> points = points_of(rows);
  std::optional<std::vector<Line>> best;
  for (const auto& starts : best_partitions(points, static_cast<std::size_t>(most_segments))) {
    std::vector<Line> lines = lines_of(points, starts);
    if (!best || information(lines, points.size()) < information(*best, points.size())) {
      best = std::move(lines);
    }
  }
  double sum = 0;
  for (const Line& line : *best) {
    segments_.push_back(line.segment());
    sum += line.sum_of_squares();
    const double worst = segments_.back().worst_residual;
    if (std::abs(worst) > std::abs(worst_residual_)) worst_residual_ = worst;
  }
  rms_residual_ = std::sqrt(sum / static_cast<double>(points.size()));
}

FitPrediction PiecewiseFit::predict(Bytes bytes) const {
  // Between two segments the later one: it is the one that large buckets are in.
  const FitSegment* segment = &segments_.front();
  for (const FitSegment& candidate : segments_) {
    segment = &candidate;
    if (bytes <= candidate.last) break;
  }
  FitPrediction prediction;
  prediction.time = Seconds(segment->latency.value +
                            static_cast<double>(bytes) * segment->seconds_per_byte.value);
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
    text += fmt::format(
        "  {:>12}{:>14}{:>8}{:>22}{:>26}{:>9.1f}%{:>+9.1f}%\n", segment.first, segment.last,
        segment.points,
        fmt::format("{:.4g} +- {:.2g}", segment.latency.value * 1e6, segment.latency.margin * 1e6),
        bandwidth, segment.rms_residual * 100, segment.worst_residual * 100);
  }
  text += fmt::format("# residuals over all sizes: rms {:.1f}%, worst {:+.1f}%\n",
                      fit.rms_residual() * 100, fit.worst_residual() * 100);
  return text;
}

}  // namespace gradsync
