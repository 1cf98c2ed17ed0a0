#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "gradsync/simulator/kernel/packet_loss.hpp"
#include "gradsync/simulator/kernel/sim_engine.hpp"
#include "gradsync/testbed/result/run_result.hpp"

namespace gradsync {

/// Keeps account of the links of a simulation: the bytes that the job and others send over each,
/// and the bandwidth that it had for them, which may change. Before the simulation runs, or in the
/// kernel.
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

  /// What part of its bandwidth a link has from now on, where it is open; a share of 0 is one
  /// without which no flow ends within a run, SimGrid has no link without bandwidth.
  void set_share(Link* link, double share);
  double share(Link* link) { return links_[number(link)].share; }
  /// Nothing passes until `date`, at which the caller opens it again; a link that is closed twice
  /// has to be opened twice.
  void close(Link* link, Seconds date);
  void open(Link* link);
  /// What the link gives while it is open.
  BytesPerSecond bandwidth(std::size_t link) const {
    return {links_[link].nominal * links_[link].share};
  }
  bool is_open(Link* link) { return links_[number(link)].closed == 0; }
  /// How long it takes until all links of a way are open; 0 where they are. A flow must not start
  /// before: SimGrid would keep it for ever at what the way gave when it started.
  Seconds time_to_open(const Way& way) const;
  /// Whether a link of the way lets nothing pass, not even a message without bytes.
  bool is_cut(const Way& way) const;

  /// The link's bandwidth will change, or others will use it, while the simulation runs: all its
  /// flows are SimGrid's. Before it runs.
  void always_solve(Link* link) { links_[number(link)].always_solve = true; }
  /// Whether nothing but the job's own flows ever happens to the links of a way, and it has some.
  bool is_plain(const Way& way) const;
  /// The link will have more of its bandwidth than it has at times.
  void expect_recovery(Link* link);
  /// Calls `start`, which starts a flow. SimGrid lets no flow be faster, ever, than its way is when
  /// it starts; so links that will recover have all of their bandwidth as long as that takes.
  template <typename Start>
  void start_flow(const Way& way, const Start& start) {
    if (!any_recovers_) return start();
    show_nominal(way, true);
    start();
    show_nominal(way, false);
  }

  /// Packets that a link loses, as long as the period lasts. To be said before the simulation runs.
  void lose_packets(Link* link, const LossPeriod& period);
  /// The periods of all links of a way.
  std::vector<LossPeriod> losses(const Way& way) const;
  /// What the way gives at best.
  BytesPerSecond nominal_bandwidth(const Way& way) const;
  /// A word on the link for results: "half of its bandwidth".
  void describe(Link* link, const std::string& condition);

  /// A collective has been joined by all ranks, and is over.
  void begin_communication();
  void end_communication();

  /// What has passed until `end`. Of the links, those that are busiest, at most `kListed`.
  static constexpr std::size_t kListed = 16;
  NetworkLoad result(Seconds end) const;

 private:
  struct Account {
    Link* link = nullptr;
    double nominal = 0;  ///< bytes a second
    double share = 1;
    int closed = 0;  ///< times
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
  int communications_ = 0;  ///< under way
  Seconds communication_begin_{0};
  Seconds communication_{0};
};

}  // namespace gradsync
