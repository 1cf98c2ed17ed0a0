#pragma once

#include <string>
#include <vector>

#include "gradsync/predict/point_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// One setting of a scenario that a sweep varies.
struct SweepAxis {
  std::string path;                 ///< dotted, as in --set: "ddp.bucket_cap_mb"
  std::vector<std::string> values;  ///< as on the command line
};

/// "/ddp/bucket_cap_mb=1,5,25" (a JSON pointer) or "ddp.bucket_cap_mb=1,5,25". Values are separated
/// by commas outside of brackets, braces and quotes. Throws Error(kUsage) for malformed text or a
/// duplicate value.
SweepAxis parse_sweep_axis(const std::string& text);

/// One combination of values, in the order of the axes.
struct SweepPoint {
  std::vector<std::string> values;
  std::vector<ScenarioOverride> overrides;
};

/// All combinations; the last axis varies fastest. Without axes, a single point.
std::vector<SweepPoint> sweep_points(const std::vector<SweepAxis>& axes);

/// The result of a sweep: one row per point.
struct Sweep {
  std::string scenario;
  std::vector<SweepAxis> axes;
  struct Row {
    std::vector<std::string> values;
    PointResult result;
    std::string key;  ///< name of its file in the sweep's folder
  };
  std::vector<Row> rows;
};

// The table in its four formats. Times are in milliseconds in the first three, and in seconds, as
// in all of gradsync's JSON, in the fourth.
std::string sweep_text(const Sweep& sweep);
std::string sweep_csv(const Sweep& sweep);
std::string sweep_markdown(const Sweep& sweep);
nlohmann::ordered_json to_json(const Sweep& sweep);

/// The plot: step time (solid) and exposed communication (dashed) over the first axis with more
/// than one value, one color per combination of the others.
std::string sweep_svg(const Sweep& sweep);

/// 32 hex digits of XXH3-128 over the texts: the key under which a result is stored.
std::string content_key(const std::vector<std::string>& texts);

}  // namespace gradsync
