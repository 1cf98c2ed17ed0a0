#pragma once

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Reads the cluster's platform file and sends a byte from each rank's host to every other, in a
/// process of its own: SimGrid answers a mistake in such a file with an assertion that ends the
/// process, here and there only when the first message leaves.
///
/// Throws ConfigError where that process ended so, with SimGrid's sentence and what was being
/// tried; where there are too few hosts, one is off from the start, two have no route between
/// them, or a way leads over Wi-Fi, whose stations this simulator does not model. Nothing is left
/// behind in this process. Beyond 64 ranks only ways to neighbours and over powers of two are
/// tried.
void try_platform_file(const ClusterSpec& cluster, int ranks);

}  // namespace gradsync
