#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/train/run_result.hpp"
#include "simulator/sim_engine.hpp"

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

  /// What part of its bandwidth a link has from now on; a share of 0 is one without which no flow
  /// ends within a run, SimGrid has no link without bandwidth.
  void set_share(Link* link, double share);
  /// The same as a share of 0, until `date`, at which the caller gives it its share back.
  void close(Link* link, Seconds date);
  /// How long it takes until all links of a way are open; 0 where they are. A flow must not start
  /// before: SimGrid would keep it for ever at what the way gave when it started.
  Seconds time_to_open(const Way& way) const;
  double share(Link* link) { return links_[number(link)].share; }
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
    double bytes = 0;
    double bytes_of_others = 0;
    double capacity = 0;  ///< bytes that could have passed until `since`
    Seconds since{0};
    Seconds opens{0};  ///< closed until then
    std::string condition;
  };
  Number number(Link* link);

  SimEngine* engine_;
  std::vector<Account> links_;
  std::unordered_map<const Link*, Number> numbers_;
  int communications_ = 0;  ///< under way
  Seconds communication_begin_{0};
  Seconds communication_{0};
};

}  // namespace gradsync
