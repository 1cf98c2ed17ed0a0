#pragma once

#include <string>
#include <vector>

#include "gradsync/predict/point_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// One value of a scenario that a sweep varies.
struct SweepAxis {
  std::string path;                 ///< with dots, as --set takes it: "ddp.bucket_cap_mb"
  std::vector<std::string> values;  ///< as on the command line
};

/// "/ddp/bucket_cap_mb=1,5,25" (a JSON pointer) or "ddp.bucket_cap_mb=1,5,25". Values are separated
/// by commas that stand outside of brackets, braces and quotes. Throws Error(kUsage) for a text of
/// another form or a value that is there twice.
SweepAxis parse_sweep_axis(const std::string& text);

/// One combination of values, in the order of the axes.
struct SweepPoint {
  std::vector<std::string> values;
  std::vector<ScenarioOverride> overrides;
};

/// Every combination; the last axis varies fastest. Without axes there is one point.
std::vector<SweepPoint> sweep_points(const std::vector<SweepAxis>& axes);

/// What a sweep found: a row for each point.
struct Sweep {
  std::string scenario;
  std::vector<SweepAxis> axes;
  struct Row {
    std::vector<std::string> values;
    PointResult result;
    std::string key;  ///< of its file in the sweep's folder
  };
  std::vector<Row> rows;
};

// The four forms of its table. Times are in milliseconds in the first three, and in seconds, as
// everywhere in gradsync's JSON, in the fourth.
std::string sweep_text(const Sweep& sweep);
std::string sweep_csv(const Sweep& sweep);
std::string sweep_markdown(const Sweep& sweep);
nlohmann::ordered_json to_json(const Sweep& sweep);

/// The plot: the step time (solid) and the exposed communication (dashed) over the first axis that
/// has more than one value, a colour for each combination of the others.
std::string sweep_svg(const Sweep& sweep);

/// 32 hex digits of XXH3-128 over the texts: what a result is kept under.
std::string content_key(const std::vector<std::string>& texts);

}  // namespace gradsync
