// Model tests: the time that a simulated ring takes, held against the textbook's formula.

#include <algorithm>
#include <cstdio>

#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

/// 2(n-1)(alpha + S/(n*beta))
double closed_form(int ranks, double bytes, double alpha, double beta) {
  return 2.0 * (ranks - 1) * (alpha + bytes / (ranks * beta));
}

double relative_difference(double a, double b) {
  return std::abs(a - b) / std::max(a, b);
}

}  // namespace

TEST_CASE("an uncontended ring takes 2(n-1)(alpha + S/(n*beta)), by messages and by flows") {
  std::printf("\n%6s %10s %10s %10s | %13s %13s %13s\n", "ranks", "bytes", "alpha us", "beta GB/s",
              "expected us", "message us", "flow us");
  struct Link {
    double alpha, beta;
  };
  // TCP on a cloud's Ethernet, InfiniBand, NVLink, and no latency at all.
  const Link links[] = {{50e-6, 1.25e9}, {4e-6, 12.5e9}, {3e-6, 300e9}, {0, 10e9}};
  for (const int ranks : {2, 3, 4, 8, 16, 33}) {
    for (const std::int64_t elements : {4'000, 262'144, 6'553'600, 40'000'000}) {
      for (const Link& link : links) {
        const double bytes = 4.0 * static_cast<double>(elements);
        const double expected = closed_form(ranks, bytes, link.alpha, link.beta);
        const ClusterSpec cluster = one_switch(ranks, Seconds(link.alpha), link.beta);
        const double message = allreduce_time(cluster, ranks, elements, Fidelity::kMessage).count();
        const double flow = allreduce_time(cluster, ranks, elements, Fidelity::kFlow).count();
        std::printf("%6d %10.0f %10.1f %10.2f | %13.3f %13.3f %13.3f\n", ranks, bytes,
                    link.alpha * 1e6, link.beta / 1e9, expected * 1e6, message * 1e6, flow * 1e6);
        CHECK(relative_difference(message, expected) < 0.01);
        CHECK(relative_difference(flow, expected) < 0.01);
        CHECK(relative_difference(message, flow) < 0.01);
      }
    }
  }
}
