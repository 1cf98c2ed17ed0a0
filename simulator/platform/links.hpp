#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gradsync/simulator/platform/platform.hpp"

namespace gradsync {

/// The numbered links of a cluster, and the route of each message: everything the analytic model
/// (analytic.hpp) needs to know about the network.
class Links {
 public:
  virtual ~Links() = default;
  Links() = default;
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// Replaces the contents of `links` by the numbers of the links from one rank to another.
  virtual void route(int from, int to, std::vector<std::size_t>& links) = 0;
  virtual std::size_t count() const = 0;
  virtual BytesPerSecond bandwidth(std::size_t link) const = 0;
  virtual std::string name(std::size_t link) const = 0;
  virtual Seconds latency(int from, int to) = 0;
};

/// Derived from the description, without SimGrid: stars and leaf-spine fabrics of any size. Null
/// for other clusters.
std::unique_ptr<Links> make_structural_links(const ClusterSpec& cluster, int ranks);

/// Those of SimGrid's platform, which must contain all ranks and outlive the result.
std::unique_ptr<Links> make_platform_links(const Platform& platform);

}  // namespace gradsync
