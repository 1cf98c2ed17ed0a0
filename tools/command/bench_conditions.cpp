#include "tools/command/bench_conditions.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/faults/rank_imperfections.hpp"

namespace gradsync {
namespace {

bool is_outside_steps(FaultPoint point) {
  return point == FaultPoint::kInit || point == FaultPoint::kEpochEnd ||
         point == FaultPoint::kTrainingEnd || point == FaultPoint::kCleanUp;
}

void check_fault(const Scenario& scenario, std::size_t index) {
  const FaultSpec& fault = scenario.faults[index];
  const auto refuse = [&](const char* key, const std::string& expected, const std::string& found,
                          const std::string& hint) {
    throw ConfigError({scenario.file, fmt::format("/faults/{}/{}", index, key), expected,
                       fmt::format("\"{}\"", found), hint});
  };
  const auto* delay = fault.as<DelayFault>();
  if (delay != nullptr && is_outside_steps(delay->at)) {
    refuse("at", "a place inside a step", to_string(delay->at),
           "the steps of a benchmark are its all-reduces, and there is nothing around them");
  }
  if (delay != nullptr || fault.as<LinkFault>() != nullptr ||
      fault.as<RendezvousFault>() != nullptr) {
    return;
  }
  const bool is_slots = fault.as<SlotsFault>() != nullptr;
  refuse("kind", "\"delay\", \"link\" or \"rendezvous\"", name_of(fault),
         is_slots
             ? "a benchmark has one collective under way at a time, for which every device has room"
             : "a benchmark has no model and no training loop in which another fault could happen");
}

void check_imperfections(const Scenario& scenario) {
  const ImperfectionSpec& spec = scenario.imperfections;
  const auto refuse = [&](const std::string& key, const std::string& expected, double found) {
    throw ConfigError({scenario.file, fmt::format("/imperfections/{}", key), expected,
                       fmt::format("{}", found),
                       "a benchmark computes nothing that could be slower; loader_stalls make a "
                       "rank late to its all-reduces"});
  };
  if (spec.compute_spread != 0) refuse("compute/spread", "0", spec.compute_spread);
  if (spec.compute_jitter != 0) refuse("compute/jitter", "0", spec.compute_jitter);
  if (spec.while_communicating != 1) {
    refuse("compute/while_communicating", "1", spec.while_communicating);
  }
  for (std::size_t i = 0; i < spec.slow_ranks.size(); ++i) {
    refuse(fmt::format("slow_ranks/{}/factor", i), "no slow ranks", spec.slow_ranks[i].factor);
  }
}

}  // namespace

void check_bench_conditions(const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) check_fault(scenario, i);
  check_imperfections(scenario);
}

std::string describe_bench_conditions(const Scenario& scenario) {
  std::vector<std::string> faults;
  for (const FaultSpec& fault : scenario.faults) {
    const char* kind = name_of(fault);
    if (std::find(faults.begin(), faults.end(), kind) == faults.end()) faults.emplace_back(kind);
  }
  std::vector<std::string> imperfections;
  const ImperfectionSpec& spec = scenario.imperfections;
  for (const auto& [name, is_there] :
       {std::pair{"links", !spec.links.empty()}, std::pair{"traffic", !spec.traffic.empty()},
        std::pair{"late_ranks", !spec.late_ranks.empty()},
        std::pair{"loader_stalls", !spec.loader_stalls.empty()}}) {
    if (is_there) imperfections.emplace_back(name);
  }
  std::string text;
  if (!faults.empty()) text += fmt::format("faults: {}", fmt::join(faults, ", "));
  if (!imperfections.empty()) {
    text += fmt::format("{}imperfections: {}", text.empty() ? "" : "; ",
                        fmt::join(imperfections, ", "));
  }
  return text.empty() ? "" : ", with " + text;
}

Seconds bench_delay(const Scenario& scenario, int rank, std::int64_t step) {
  Seconds delay = RankImperfections(scenario.imperfections, rank).loader_stall(step);
  for (const FaultSpec& fault : scenario.faults) {
    const auto* late = fault.as<DelayFault>();
    if (late != nullptr && concerns(fault, rank) && covers(*late, step)) delay += late->duration;
  }
  return delay;
}

}  // namespace gradsync
