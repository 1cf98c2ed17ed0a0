#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "gradsync/simulator/kernel/packet_loss.hpp"
#include "gradsync/simulator/kernel/sim_engine.hpp"
#include "gradsync/testbed/result/run_result.hpp"

namespace gradsync {

/// Tracks the links of a simulation: the bytes of the job and of background traffic over each link,
/// and the link's bandwidth, which may change over time. Use it before the simulation runs, or in
/// kernel context.
class LinkLoads {
 public:
  using Link = simgrid_compat::s4u::Link;
  using Number = std::uint32_t;  ///< of a link
  using Way = std::vector<Number>;

  explicit LinkLoads(SimEngine& engine) : engine_(&engine) {}

  Way way(const std::vector<Link*>& links);
  void add(const Way& way, double bytes) {
    for (const Number link : way) links_[link].bytes += bytes;
  }
  void add_of_others(const Way& way, double bytes) {
    for (const Number link : way) links_[link].bytes_of_others += bytes;
  }

  /// Sets the fraction of its bandwidth that a link has from now on while it is open. SimGrid has
  /// no links without bandwidth, so a share of 0 becomes one that lets no flow end within a run.
  void set_share(Link* link, double share);
  double share(Link* link) { return links_[number(link)].share; }
  /// Closes a link until `date`, when the caller opens it again. A link that is closed twice must
  /// be opened twice.
  void close(Link* link, Seconds date);
  void open(Link* link);
  /// The link's current bandwidth while it is open.
  BytesPerSecond bandwidth(std::size_t link) const {
    return {links_[link].nominal * links_[link].share};
  }
  bool is_open(Link* link) { return links_[number(link)].closed == 0; }
  /// Time until all links of a route are open; 0 if they are. A flow must not start earlier:
  /// SimGrid would limit it forever to the route's bandwidth at its start.
  Seconds time_to_open(const Way& way) const;
  /// Whether some link of the route lets nothing pass, not even an empty message.
  bool is_cut(const Way& way) const;

  /// Declares, before the simulation runs, that the link's bandwidth will change or that it carries
  /// background traffic: SimGrid then solves all its flows.
  void always_solve(Link* link) { links_[number(link)].always_solve = true; }
  /// Whether the links of a route, of which there is at least one, carry only the job's own flows
  /// and never change.
  bool is_plain(const Way& way) const;
  /// Declares that the link's bandwidth will be larger later than at some earlier time.
  void expect_recovery(Link* link);
  /// Calls `start`, which starts a flow. SimGrid never lets a flow exceed the bandwidth of its
  /// route at its start, so links that will recover get their full bandwidth during the call.
  template <typename Start>
  void start_flow(const Way& way, const Start& start) {
    if (!any_recovers_) return start();
    show_nominal(way, true);
    start();
    show_nominal(way, false);
  }

  /// Adds a period in which a link loses packets. Call before the simulation runs.
  void lose_packets(Link* link, const LossPeriod& period);
  /// The loss periods of all links of a route.
  std::vector<LossPeriod> losses(const Way& way) const;
  /// The route's bandwidth without any fault.
  BytesPerSecond nominal_bandwidth(const Way& way) const;
  /// Sets the link's condition for results: "half of its bandwidth".
  void describe(Link* link, const std::string& condition);

  /// A collective has been joined by all ranks; a collective has ended.
  void begin_communication();
  void end_communication();

  /// The loads up to `end`, with at most `kListed` of the busiest links.
  static constexpr std::size_t kListed = 16;
  NetworkLoad result(Seconds end) const;

 private:
  struct Account {
    Link* link = nullptr;
    double nominal = 0;  ///< bytes per second
    double share = 1;
    int closed = 0;  ///< number of outstanding closes
    double bytes = 0;
    double bytes_of_others = 0;
    double capacity = 0;  ///< bytes that could have passed until `since`
    Seconds since{0};
    Seconds opens{0};  ///< closed until then
    bool recovers = false;
    bool always_solve = false;
    std::vector<LossPeriod> losses;
    std::string condition;

    double effective_share() const { return closed > 0 ? 0 : share; }
  };
  void change(Account& account, double share, int closed);
  void set_bandwidth(const Account& account, double share);
  void show_nominal(const Way& way, bool nominal);
  Number number(Link* link);

  SimEngine* engine_;
  std::vector<Account> links_;
  std::unordered_map<const Link*, Number> numbers_;
  bool any_recovers_ = false;
  int closed_ = 0;          ///< sum over all links
  int communications_ = 0;  ///< in flight
  Seconds communication_begin_{0};
  Seconds communication_{0};
};

}  // namespace gradsync
