#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gradsync/simulator/platform/platform.hpp"

namespace gradsync {

/// The links of a cluster by number, and which of them a message passes: all that the closed form
/// (analytic.hpp) needs to know of the network.
class Links {
 public:
  virtual ~Links() = default;
  Links() = default;
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// Puts the numbers of the links from one rank to another into `links`; what was there goes.
  virtual void route(int from, int to, std::vector<std::size_t>& links) = 0;
  virtual std::size_t count() const = 0;
  virtual BytesPerSecond bandwidth(std::size_t link) const = 0;
  virtual std::string name(std::size_t link) const = 0;
  virtual Seconds latency(int from, int to) = 0;
};

/// Worked out from the description, without SimGrid: stars and leaf-spine fabrics of any size.
/// Null for other clusters.
std::unique_ptr<Links> make_structural_links(const ClusterSpec& cluster, int ranks);

/// Those of SimGrid's platform, which has to have all ranks and to outlive it.
std::unique_ptr<Links> make_platform_links(const Platform& platform);

}  // namespace gradsync
