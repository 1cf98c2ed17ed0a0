#include "gradsync/simulator/simulation.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gradsync/comm/comm_error.hpp"
#include "gradsync/simulator/collective/collective_factory.hpp"
#include "gradsync/simulator/collective/sim_group.hpp"
#include "gradsync/simulator/collective/sim_process_group.hpp"
#include "gradsync/simulator/kernel/sim_clock.hpp"
#include "gradsync/simulator/kernel/sim_engine.hpp"
#include "gradsync/simulator/platform/links.hpp"
#include "gradsync/simulator/platform/platform.hpp"
#include "gradsync/simulator/platform/platform_trial.hpp"
#include "gradsync/simulator/world/network_imperfections.hpp"
#include "gradsync/simulator/world/outages.hpp"
#include "gradsync/simulator/world/world_faults.hpp"

namespace gradsync {
namespace {

struct SimRank {
  SimRank(int rank, SimEngine& engine, SimGroup& group, FlopsPerSecond compute_rate,
          const SimulationOptions& options)
      : clock(engine, compute_rate,
              options.imperfections.while_communicating * options.gpu_costs.while_communicating),
        recorder(std::make_shared<FlightRecorder>(options.flight_recorder_size)),
        process_group(rank, group, clock, recorder) {
    report.rank = rank;
    report.world_size = group.size();
  }

  SimClock clock;
  std::shared_ptr<FlightRecorder> recorder;
  SimProcessGroup process_group;
  RankReport report;
  bool has_ended = false;
  /// For a fault that blocks the rank; never released.
  simgrid_compat::s4u::SemaphorePtr never = simgrid_compat::s4u::Semaphore::create(0);
};

/// Whether the analytic model is insufficient: it knows the bandwidth of cables, but not when data
/// passes over them.
bool needs_flows(const SimulationOptions& options) {
  const ImperfectionSpec& spec = options.imperfections;
  return !spec.traffic.empty() ||
         std::any_of(options.faults.begin(), options.faults.end(),
                     [](const FaultSpec& fault) { return fault.as<LinkFault>() != nullptr; }) ||
         std::any_of(spec.links.begin(), spec.links.end(),
                     [](const ImperfectionSpec::Link& link) { return link.down > Seconds{0}; });
}

Fidelity resolve(const SimulationOptions& options, int ranks) {
  const Fidelity fidelity = options.fidelity;
  if (fidelity == Fidelity::kAnalytic && needs_flows(options)) {
    throw ConfigError({"", "/simulation/fidelity", "\"auto\", \"message\" or \"flow\"",
                       "\"analytic\"",
                       "a closed form knows no traffic of others and no cables that change"});
  }
  if (fidelity != Fidelity::kAuto) return fidelity;
  if (ranks <= kAutoMessageRanks) return Fidelity::kMessage;
  return ranks <= kAutoFlowRanks || needs_flows(options) ? Fidelity::kFlow : Fidelity::kAnalytic;
}

std::string describe_fidelity(Fidelity fidelity, Fidelity chosen, int ranks, int actors) {
  std::string text = "fidelity message";
  if (chosen == Fidelity::kFlow) text = "fidelity flow";
  if (chosen == Fidelity::kAnalytic) text = "fidelity analytic";
  if (fidelity == Fidelity::kAuto) {
    text += fmt::format(" (auto: {} ranks; ", ranks);
    if (chosen == Fidelity::kAnalytic) {
      text += fmt::format("flow up to {})", kAutoFlowRanks);
    } else if (ranks > kAutoFlowRanks) {
      text += "a closed form knows no traffic of others and no cables that change)";
    } else {
      text += fmt::format("message up to {})", kAutoMessageRanks);
    }
  }
  if (actors < ranks) text += "; all ranks are alike: rank 0 stands for them";
  return text;
}

/// A hint if the links have a measured rate of all-reduces instead of their own, because the cost
/// is then counted twice.
std::optional<std::string> hint_on_links(const ClusterSpec& cluster) {
  if (cluster.node_topology != ClusterSpec::NodeTopology::kPcieTree ||
      cluster.intra_node.bandwidth.value != cluster.pcie_socket.bandwidth.value) {
    return std::nullopt;
  }
  return fmt::format(
      "cluster.intra_node and cluster.pcie_tree.socket both have {}: if that is what an all-reduce "
      "was measured to reach, give the links their own rates (PCIe 4.0 x16: 24 GB/s) and let "
      "\"gradsync fit LOG --cluster FILE\" find the rest",
      format_bandwidth(cluster.intra_node.bandwidth));
}

Bytes peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<Bytes>(usage.ru_maxrss) * 1024;
}

/// Completes a rank's report, but keeps what the rank itself has filled in.
void close_report(SimRank& rank, RankState state) {
  RankReport& report = rank.report;
  if (report.state == RankState::kRunning) report.state = state;
  if (report.ended.count() <= 0) report.ended = rank.clock.now();
  if (report.flight.empty()) report.flight = rank.recorder->snapshot();
  rank.has_ended = true;
}

/// Adds the other ranks' reports after the first: only how they ended. Their steps and collectives
/// equal rank 0's.
void add_like(std::vector<RankReport>& reports, int ranks) {
  RankReport like = reports.front();
  like.steps.clear();
  like.collectives.clear();
  like.flight.clear();
  like.buckets.clear();
  like.warnings.clear();
  like.ddp_logging = {};
  for (int rank = 1; rank < ranks; ++rank) {
    like.rank = rank;
    reports.push_back(like);
  }
}

/// The failure reported to the other ranks when this one has failed.
SimGroup::Failure failure_of(const RankReport& report) {
  const ErrorCode code = report.error_code.value_or(ErrorCode::kInternal);
  return {code == ErrorCode::kDesync ? code : ErrorCode::kPeerFailed,
          fmt::format("rank {} failed: {}", report.rank, report.error)};
}

/// What remains of a rank whose process ends without a word: only how it ended.
void leave_no_word(SimRank& rank, const ProcessEnd& end, Seconds ended) {
  const RankReport report = std::exchange(rank.report, RankReport{});
  rank.report.rank = report.rank;
  rank.report.world_size = report.world_size;
  rank.report.ended = ended;
  rank.has_ended = true;
  if (end.signal != 0) {
    rank.report.exit_signal = end.signal;
  } else {
    rank.report.exit_code = end.exit_code;
  }
}

void end_without_a_word(SimRank& rank, SimGroup& group, const ProcessEnd& end) {
  leave_no_word(rank, end, rank.clock.now());
  group.fail({ErrorCode::kRankDied,
              end.signal != 0
                  ? fmt::format("rank {} died (signal {})", rank.report.rank, end.signal)
                  : fmt::format("rank {} died (exit status {})", rank.report.rank, end.exit_code)});
}

void run_actor(SimRank& rank, SimGroup& group, const SimulationOptions& options,
               const RankMain& rank_main) {
  RankRuntime runtime;
  runtime.end_process = [&](const ProcessEnd& end) {
    if (end.signal == SIGSTOP) rank.process_group.stall();
    throw end;
  };
  runtime.block = [&] {
    rank.clock.settle();
    rank.never->acquire();
  };
  runtime.process_group = &rank.process_group;
  runtime.clock = &rank.clock;
  runtime.device = options.device != nullptr ? options.device : &meta_device();
  bool failed = false;
  std::optional<ProcessEnd> process_end;
  try {
    rank_main(runtime, rank.report);
  } catch (const ProcessEnd& end) {
    process_end = end;
  } catch (const std::exception& error) {
    note_error(rank.report, error);
    failed = true;
  }
  failed = failed || rank.report.state == RankState::kFailed;
  rank.report.clean_up_since.reset();
  // Outside the catch block: other ranks run while this one pays its time debt.
  rank.clock.settle();
  if (process_end) return end_without_a_word(rank, group, *process_end);
  close_report(rank, failed ? RankState::kFailed : RankState::kFinished);
  if (failed) group.fail(failure_of(rank.report));
}

/// Between how many places traffic can flow: the nodes, or the hosts of a platform file.
std::int64_t places(const ClusterSpec& cluster, int ranks) {
  if (!cluster.platform_file.empty()) return ranks;
  return (ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
}

using Members = std::vector<std::unique_ptr<SimRank>>;

void check_machines(const ClusterSpec& cluster, int ranks) {
  if (cluster.platform_file.empty()) {
    check_cluster(cluster, ranks);
  } else {
    try_platform_file(cluster, ranks);
  }
}

/// Creates the members of `group` and their actors, which start when the engine runs.
Members start_members(SimEngine& engine, const Platform& platform, SimGroup& group, int actors,
                      FlopsPerSecond compute_rate, const SimulationOptions& options,
                      const RankMain& rank_main) {
  Members members;
  for (int rank = 0; rank < actors; ++rank) {
    members.push_back(std::make_unique<SimRank>(rank, engine, group, compute_rate, options));
    SimRank& member = *members.back();
    engine.start_actor(fmt::format("rank-{}", rank), platform.host(rank), options.stack_bytes,
                       [&] { run_actor(member, group, options, rank_main); });
  }
  return members;
}

/// What ranks that still run at the end do not report themselves while their stacks are unwound.
void complete_reports(const Members& members, Seconds now) {
  for (const auto& member : members) {
    RankReport& report = member->report;
    if (member->has_ended || report.state != RankState::kRunning) continue;
    report.ended = now;
    report.flight = member->recorder->snapshot();
  }
}

/// The members' reports, with what `outages` and the conditions of the world add to them.
std::vector<RankReport> take_reports(const Members& members, const Outages& outages,
                                     std::vector<WorldCondition> world) {
  world.insert(world.end(), outages.conditions().begin(), outages.conditions().end());
  std::vector<RankReport> reports;
  for (const auto& member : members) {
    if (const auto death = outages.death(member->report.rank)) {
      leave_no_word(*member, {.signal = SIGKILL}, *death);
    }
    member->report.world = world;
    reports.push_back(std::move(member->report));
  }
  return reports;
}

/// The collectives of the groups that the job's ranks make, and how they run them.
SimGroup::Options group_options(const ClusterSpec& cluster, const SimulationOptions& options,
                                int ranks, Fidelity fidelity) {
  SimGroup::Options result{options};
  result.communication_threads = options.communication_threads;
  // The analytic model shares the cables only among the job's collectives; subgroups use flows.
  const Fidelity of_group = fidelity == Fidelity::kAnalytic ? Fidelity::kFlow : fidelity;
  result.collectives_of = [&cluster, &options, of_group](int of_ranks, RankNetwork& network) {
    const auto latency = [&network](int from, int to) { return network.latency(from, to); };
    return std::make_unique<CollectiveFactory>(cluster, options.communication, of_ranks, of_group,
                                               nullptr, latency);
  };
  result.device_slots = device_slots(options.faults, ranks);
  result.gpu_costs = options.gpu_costs;
  return result;
}

}  // namespace

RunOutcome simulate(const ClusterSpec& cluster, int ranks, const SimulationOptions& options,
                    const RankMain& rank_main) {
  const auto begin = std::chrono::steady_clock::now();
  check_machines(cluster, ranks);
  const ImperfectionSpec& imperfections = options.imperfections;
  const Fidelity fidelity = resolve(options, ranks);
  std::unique_ptr<Links> links;
  // Links that differ must be looked up in the platform.
  if (fidelity == Fidelity::kAnalytic && imperfections.links.empty()) {
    links = make_structural_links(cluster, ranks);
  }
  const bool folded = fidelity == Fidelity::kAnalytic && options.ranks_are_alike;
  const int actors = folded ? 1 : ranks;

  SimEngine engine;
  const std::vector<TrafficFlow> traffic = draw_traffic(imperfections, places(cluster, ranks));
  // If the analytic model knows the links itself, SimGrid needs hosts only for the actors.
  Platform platform(engine, cluster, links != nullptr ? actors : ranks, traffic);
  LinkLoads loads(engine);
  arrange_links(imperfections, engine, platform, loads);
  arrange_traffic(engine, platform, loads);
  if (fidelity == Fidelity::kAnalytic && links == nullptr) links = make_platform_links(platform);
  Transfers transfers(engine, loads, options.solve_all_flows || !cluster.platform_file.empty());
  RankNetwork network(engine, platform, loads, transfers);
  CollectiveFactory collectives(
      cluster, options.communication, ranks, fidelity, links.get(), [&](int from, int to) {
        return links != nullptr ? links->latency(from, to) : network.latency(from, to);
      });
  SimGroup group(engine, network, collectives, actors,
                 group_options(cluster, options, ranks, fidelity));

  Outages outages(engine, platform, actors, [&](int, const std::string& sentence) {
    group.fail({ErrorCode::kRankDied, sentence});
  });
  schedule_world_faults(engine, loads, options.faults);
  const Members members =
      start_members(engine, platform, group, actors, cluster.compute_rate, options, rank_main);

  Seconds end{0};
  engine.run([&] {
    end = engine.now();
    complete_reports(members, end);
  });

  RunOutcome outcome;
  for (const auto& member : members) end = std::max(end, member->report.ended);
  outcome.reports =
      take_reports(members, outages, world_conditions(options.faults, imperfections, end));
  if (folded) add_like(outcome.reports, ranks);
  outcome.network = loads.result(end);
  outcome.explanations = collectives.planner().explanations();
  outcome.simulated = end;
  outcome.wall = std::chrono::steady_clock::now() - begin;
  outcome.peak_rss_bytes = peak_rss_bytes();
  outcome.notes.push_back(describe_fidelity(options.fidelity, fidelity, ranks, actors));
  if (auto hint = hint_on_links(cluster)) outcome.notes.push_back(std::move(*hint));
  const std::string summary = collectives.planner().summary();
  if (!summary.empty()) outcome.notes.push_back(summary);
  return outcome;
}

void on_time_advance(std::function<void(Seconds)> callback) {
  simgrid_compat::s4u::Engine::on_time_advance_cb(
      [callback = std::move(callback)](double delta) { callback(Seconds(delta)); });
}

}  // namespace gradsync
