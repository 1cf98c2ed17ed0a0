#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/simulator/kernel/sim_engine.hpp"
#include "gradsync/simulator/platform/platform.hpp"
#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync {

/// Tracks hosts and links that go off during a run, according to the profiles of a platform file.
/// SimGrid ends actors on such a host and drops what passes such a link. Kernel context only.
class Outages {
 public:
  /// `died` is called, at that time, for each of the first `actors` ranks whose host goes off, with
  /// a sentence that says so.
  using Died = std::function<void(int rank, const std::string& sentence)>;
  Outages(SimEngine& engine, const Platform& platform, int actors, Died died);

  /// When the rank's host went off; absent if it did not.
  std::optional<Seconds> death(int rank) const;
  /// In chronological order.
  const std::vector<WorldCondition>& conditions() const noexcept { return conditions_; }

 private:
  void host_changed(const simgrid_compat::s4u::Host& host);
  void link_changed(const simgrid_compat::s4u::Link& link);
  void note(const std::string& subject, bool is_on);

  SimEngine& engine_;
  const Platform& platform_;
  int actors_;
  Died died_;
  std::map<int, Seconds> deaths_;
  std::map<std::string, std::size_t> open_;  // by name of what is off: its index in conditions_
  std::vector<WorldCondition> conditions_;
};

}  // namespace gradsync
