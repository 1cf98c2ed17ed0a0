#pragma once

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Tries the cluster's platform file in a child process: reads it and sends a byte from each rank's
/// host to every other. SimGrid reports errors in such a file by a failed assertion that ends the
/// process, sometimes only when the first message is sent.
///
/// Throws ConfigError with SimGrid's message and the action that failed if the child ends that way,
/// if there are too few hosts, if a host is off from the start, if two hosts have no route, or if a
/// route uses Wi-Fi, whose stations are not modeled. Leaves nothing behind in this process. Above
/// 64 ranks, tries only routes to neighbors and over powers of two.
void try_platform_file(const ClusterSpec& cluster, int ranks);

}  // namespace gradsync
