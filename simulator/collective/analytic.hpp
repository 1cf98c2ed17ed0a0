#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gradsync/simulator/plan/plan.hpp"
#include "gradsync/simulator/platform/links.hpp"

namespace gradsync {

/// The analytic time of a plan: each edge takes the time that its busiest link needs for all bytes
/// crossing it, and the plan derives the duration of a phase from its edges (Plan::duration).
/// Ignores all other load on the network. Not thread-safe.
class AnalyticTimer {
 public:
  explicit AnalyticTimer(Links& links) : links_(&links) {}

  /// From the arrival of the last rank until all ranks are done.
  Seconds duration(const std::shared_ptr<const Plan>& plan, Bytes bytes);
  /// The time that the busiest link needs for flows that run at the same time.
  struct Flow {
    int from;
    int to;
    double bytes;
  };
  Seconds exchange(const std::vector<Flow>& flows);
  /// The link that limited the last plan passed to `duration`, or the library.
  const std::string& bottleneck() const noexcept { return bottleneck_; }

 private:
  Seconds phase_duration(const Plan& plan, const PlanPhase& phase, Bytes bytes);

  Links* links_;
  std::map<std::pair<std::shared_ptr<const Plan>, Bytes>, Seconds> known_;
  std::string bottleneck_;
};

}  // namespace gradsync
