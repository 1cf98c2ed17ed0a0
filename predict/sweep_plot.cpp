// Plots a sweep as SVG for browsers and papers.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "gradsync/predict/sweep.hpp"

namespace gradsync {
namespace {

constexpr double kWidth = 860, kHeight = 480;
constexpr double kLeft = 80, kRight = 620, kTop = 50, kBottom = 420;
constexpr std::array<const char*, 8> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                              "#56b4e9", "#e69f00", "#444444", "#b22222"};

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// Positions of values on the x axis, between 0 and 1: by value, logarithmic if they span a factor
/// of eight or more, or evenly spaced if they are not numbers.
class Positions {
 public:
  explicit Positions(const std::vector<std::string>& values) {
    std::vector<double> numbers;
    for (const std::string& value : values) {
      const auto number = number_in(value);
      if (!number) break;
      numbers.push_back(*number);
    }
    const bool numeric = numbers.size() == values.size();
    if (!numeric) {
      numbers.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) numbers[i] = static_cast<double>(i);
    }
    auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    const double least = *low, most = *high;
    const bool logarithmic = numeric && least > 0 && most >= 8 * least;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double at = logarithmic    ? std::log(numbers[i] / least) / std::log(most / least)
                        : most > least ? (numbers[i] - least) / (most - least)
                                       : 0.5;
      positions_[values[i]] = at;
    }
  }
  double at(const std::string& value) const { return positions_.at(value); }

 private:
  std::map<std::string, double> positions_;
};

/// 1, 2 or 5 times a power of ten, for about five ticks up to `most`.
double tick_step(double most) {
  const double rough = most / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

struct Series {
  std::string label;
  std::vector<const Sweep::Row*> rows;
};

class Plot {
 public:
  Plot(const Sweep& sweep, std::size_t axis)
      : sweep_(sweep), axis_(axis), positions_(sweep.axes[axis].values) {
    for (const Sweep::Row& row : sweep.rows) {
      most_ms_ = std::max(most_ms_, row.result.step_p50 * 1e3);
    }
    if (most_ms_ <= 0) most_ms_ = 1;
    most_ms_ *= 1.08;
  }

  std::string draw() {
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
        kWidth, kHeight);
    text(kLeft, 24, "start", sweep_.scenario + ": step (solid), exposed communication (dashed)");
    draw_axes();
    const std::vector<Series> all = series();
    for (std::size_t i = 0; i < all.size(); ++i) draw_series(all[i], i);
    return svg_ + "</svg>\n";
  }

 private:
  std::vector<Series> series() const {
    std::vector<Series> all;
    for (const Sweep::Row& row : sweep_.rows) {
      std::string label;
      for (std::size_t i = 0; i < sweep_.axes.size(); ++i) {
        if (i == axis_ || sweep_.axes[i].values.size() < 2) continue;
        label += (label.empty() ? "" : ", ") +
                 sweep_.axes[i].path.substr(sweep_.axes[i].path.rfind('.') + 1) + " " +
                 row.values[i];
      }
      const auto found =
          std::find_if(all.begin(), all.end(), [&](const Series& s) { return s.label == label; });
      Series& mine = found == all.end() ? all.emplace_back() : *found;
      mine.label = label;
      if (row.result.step_p50 > 0) mine.rows.push_back(&row);
    }
    return all;
  }

  double x(const Sweep::Row& row) const {
    return kLeft + 12 + (kRight - kLeft - 24) * positions_.at(row.values[axis_]);
  }
  double y(double seconds) const { return kBottom - (kBottom - kTop) * seconds * 1e3 / most_ms_; }

  void text(double at_x, double at_y, const char* anchor, const std::string& words) {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x,
                        at_y, anchor, escaped(words));
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    svg_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1,
        x2, y2, colour);
  }

  void polyline(const std::string& points, const char* colour, const char* more) {
    svg_ +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n",
                    points, colour, more);
  }

  void draw_axes() {
    const double step = tick_step(most_ms_);
    for (double tick = 0; tick <= most_ms_; tick += step) {
      line(kLeft, y(tick / 1e3), kRight, y(tick / 1e3), tick == 0 ? "#000000" : "#dddddd");
      text(kLeft - 8, y(tick / 1e3) + 4, "end", fmt::format("{:g}", tick));
    }
    line(kLeft, kTop, kLeft, kBottom, "#000000");
    text(kLeft - 8, kTop - 8, "end", "ms");
    for (const std::string& value : sweep_.axes[axis_].values) {
      const double at = kLeft + 12 + (kRight - kLeft - 24) * positions_.at(value);
      line(at, kBottom, at, kBottom + 5, "#000000");
      text(at, kBottom + 20, "middle", value);
    }
    text((kLeft + kRight) / 2, kBottom + 44, "middle", sweep_.axes[axis_].path);
  }

  void draw_series(const Series& series, std::size_t index) {
    const char* colour = kColours[index % kColours.size()];
    std::string steps, exposed;
    for (const Sweep::Row* row : series.rows) {
      steps += fmt::format("{:.1f},{:.1f} ", x(*row), y(row->result.step_p50));
      exposed += fmt::format("{:.1f},{:.1f} ", x(*row), y(row->result.exposed));
    }
    polyline(steps, colour, "");
    polyline(exposed, colour, " stroke-dasharray=\"6 4\"");
    for (const Sweep::Row* row : series.rows) {
      svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n", x(*row),
                          y(row->result.step_p50), colour);
    }
    const double at = kTop + 10 + 20 * static_cast<double>(index);
    line(kRight + 14, at, kRight + 38, at, colour);
    text(kRight + 44, at + 4, "start", series.label.empty() ? "step" : series.label);
  }

  const Sweep& sweep_;
  std::size_t axis_;
  Positions positions_;
  double most_ms_ = 0;
  std::string svg_;
};

}  // namespace

std::string sweep_svg(const Sweep& sweep) {
  std::size_t axis = 0;
  while (axis + 1 < sweep.axes.size() && sweep.axes[axis].values.size() < 2) ++axis;
  return Plot(sweep, axis).draw();
}

}  // namespace gradsync
