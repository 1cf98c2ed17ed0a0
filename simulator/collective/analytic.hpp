#pragma once

#include <map>
#include <memory>
#include <string>

#include "gradsync/simulator/plan/plan.hpp"
#include "gradsync/simulator/platform/links.hpp"

namespace gradsync {

/// The closed form of a plan: each edge takes as long as the busiest of its links needs for all
/// bytes that pass it, and the plan says what a phase takes with such edges (Plan::duration).
/// Nothing else shares the network. Thread-safety: none.
class AnalyticTimer {
 public:
  explicit AnalyticTimer(Links& links) : links_(&links) {}

  /// From when the last rank has joined until all are done.
  Seconds duration(const std::shared_ptr<const Plan>& plan, Bytes bytes);
  /// The link that held up the last plan that was asked for, or the library.
  const std::string& bottleneck() const noexcept { return bottleneck_; }

 private:
  Seconds phase_duration(const Plan& plan, const PlanPhase& phase, Bytes bytes);

  Links* links_;
  std::map<std::pair<std::shared_ptr<const Plan>, Bytes>, Seconds> known_;
  std::string bottleneck_;
};

}  // namespace gradsync
