// NCCL's cost model against numbers that were worked out by hand from its formulas and constants.

#include "gradsync/simulator/plan/nccl_model.hpp"
#include "gradsync/core/error.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::nccl;
using gradsync::test::Approx;
using gradsync::test::contains;

namespace {

/// 8 GPUs that reach an NVSwitch with 12 NVLinks of 20 GB/s (NCCL's figure for one).
ClusterSpec a100() {
  ClusterSpec cluster;
  cluster.library = ClusterSpec::Library::kNccl;
  cluster.generation = ClusterSpec::Generation::kAmpere;
  cluster.cpu_vendor = ClusterSpec::CpuVendor::kAmd;
  cluster.intra_node = {{240e9}, Seconds(0)};
  cluster.inter_node = {{25e9}, Seconds(0)};
  cluster.nics_per_node = 8;
  return cluster;
}

ClusterSpec h100() {
  ClusterSpec cluster = a100();
  cluster.generation = ClusterSpec::Generation::kHopper;
  cluster.cpu_vendor = ClusterSpec::CpuVendor::kIntel;
  cluster.intra_node = {{370.8e9}, Seconds(0)};
  cluster.inter_node = {{50e9}, Seconds(0)};
  return cluster;
}

Candidate rated(const nccl::Model& model, Algorithm algorithm, Protocol protocol, Bytes bytes) {
  return model.choose(bytes, &algorithm, &protocol);
}

double us(Seconds seconds) {
  return seconds.count() * 1e6;
}

}  // namespace

TEST_CASE("NCCL's model of one A100 node") {
  const nccl::Model model(a100(), 8);
  CHECK(model.ring_graph().channels == 12);
  CHECK(model.ring_graph().intra_gbps == Approx(20));
  constexpr Bytes kSize = 64 << 20;
  // Ring, Simple: 8.4 + 14 * 3.4 us; 12 * 20 GB/s * 8/14.
  const Candidate simple = rated(model, Algorithm::kRing, Protocol::kSimple, kSize);
  CHECK(us(simple.latency) == Approx(56.0));
  CHECK(simple.bandwidth.value == Approx(240e9 * 8 / 14));
  CHECK(us(simple.time) == Approx(56.0 + 67108864 / 137142.857143));
  // LL: 6.6 + 14 * 0.6; the cap of 87.7 GB/s is below half of 240.
  const Candidate ll = rated(model, Algorithm::kRing, Protocol::kLl, kSize);
  CHECK(us(ll.latency) == Approx(15.0));
  CHECK(ll.bandwidth.value == Approx(87.7e9 * 8 / 14));
  // LL128: 14 + 14 * 1.9; 0.92 of 240.
  const Candidate ll128 = rated(model, Algorithm::kRing, Protocol::kLl128, kSize);
  CHECK(us(ll128.latency) == Approx(40.6));
  CHECK(ll128.bandwidth.value == Approx(220.8e9 * 8 / 14));
  // Tree, Simple: 8.4 + 2 * 7 * 4; 0.92 * 240 halved; at 2^20 * 64 B the correction is 0.8.
  const Candidate tree = rated(model, Algorithm::kTree, Protocol::kSimple, kSize);
  CHECK(us(tree.latency) == Approx(64.4));
  CHECK(tree.bandwidth.value == Approx(110.4e9));
  CHECK(us(tree.time) == Approx(64.4 + 67108864 / (110400.0 * 0.8)));
  // Small: LL; then LL128 where 25.6 us more of latency are made up for; then Simple.
  CHECK(model.choose(1024, nullptr, nullptr).protocol == Protocol::kLl);
  CHECK(model.choose(4 << 20, nullptr, nullptr).protocol == Protocol::kLl128);
  CHECK(model.choose(1 << 30, nullptr, nullptr).protocol == Protocol::kSimple);
  CHECK(model.choose(1 << 30, nullptr, nullptr).algorithm == Algorithm::kRing);
}

TEST_CASE("NCCL's model across nodes") {
  // 4 nodes of 8: 8 channels of 24 GB/s, the first speed of the list below an adapter's 25.
  const nccl::Model model(a100(), 32);
  CHECK(model.nodes() == 4);
  CHECK(model.ring_graph().channels == 8);
  CHECK(model.ring_graph().inter_gbps == Approx(24));
  // Ring, LL, AMD: 62 steps, 6 of them 2.7 us across the network, 56 of 2 us, not 0.6.
  const Candidate ll = rated(model, Algorithm::kRing, Protocol::kLl, 1024);
  CHECK(us(ll.latency) == Approx(6.6 + 56 * 2.0 + 6 * 2.7));
  // Ring, Simple: 3 * 2 us a step; 1.4 times at 64 B a rank and channel.
  const Candidate simple = rated(model, Algorithm::kRing, Protocol::kSimple, 1 << 20);
  CHECK(us(simple.latency) == Approx(8.4 + 56 * 6.0 + 6 * 14.0));
  CHECK(us(simple.time) ==
        Approx(1.4 * (8.4 + 56 * 6.0 + 6 * 14.0) + 1048576 / (192000.0 * 32 / 62)));
  // Tree, LL128: 2 * (7 * 1.25 + 2 * 8.5); min(0.92 * 192, 8 * 17.8) * 120/128, at most 160, / 2.
  const Candidate tree = rated(model, Algorithm::kTree, Protocol::kLl128, 1 << 20);
  CHECK(us(tree.latency) == Approx(14.0 + 2 * (7 * 1.25 + 2 * 8.5)));
  CHECK(tree.bandwidth.value == Approx(142.4e9 * 120 / 128 / 2));
  // Many ranks and few bytes: a tree.
  CHECK(nccl::Model(a100(), 1024).choose(1 << 20, nullptr, nullptr).algorithm == Algorithm::kTree);
  CHECK(nccl::Model(a100(), 16).choose(1 << 30, nullptr, nullptr).algorithm == Algorithm::kRing);
}

TEST_CASE("NCCL's tree between two nodes has twice an adapter's bandwidth inside them") {
  // p4d: 4 adapters of 12.5 GB/s; the list of speeds has 12, and 24 for the tree's way to them.
  ClusterSpec cluster = a100();
  cluster.inter_node = {{12.5e9}, Seconds(0)};
  cluster.nics_per_node = 4;
  const nccl::Model two(cluster, 16);
  CHECK(rated(two, Algorithm::kRing, Protocol::kSimple, 1 << 30).bandwidth.value ==
        Approx(4 * 12e9 * 16 / 30));
  CHECK(rated(two, Algorithm::kTree, Protocol::kSimple, 1 << 30).bandwidth.value ==
        Approx(4 * 24e9 * 0.92 / 2));
  CHECK(two.choose(1 << 30, nullptr, nullptr).algorithm == Algorithm::kTree);
  // From three nodes on it is the adapters that are counted. NVIDIA/nccl#527 measured the step.
  const nccl::Model three(cluster, 24);
  CHECK(rated(three, Algorithm::kTree, Protocol::kSimple, 1 << 30).bandwidth.value ==
        Approx(4 * 12e9 * 0.92 / 2));
  CHECK(three.choose(1 << 30, nullptr, nullptr).algorithm == Algorithm::kRing);
  // A GPU that has no more to give sets the bound.
  cluster.intra_node = {{64e9}, Seconds(0)};
  CHECK(rated(nccl::Model(cluster, 16), Algorithm::kTree, Protocol::kSimple, 1 << 30)
            .bandwidth.value == Approx(4 * 15e9 * 0.92 / 2));
}

TEST_CASE("NVLS is for NVSwitch nodes of Hopper and later") {
  const nccl::Model one(h100(), 8);
  CHECK(one.allows(Algorithm::kNvls, Protocol::kSimple));
  CHECK_FALSE(one.allows(Algorithm::kNvls, Protocol::kLl));
  CHECK_FALSE(one.allows(Algorithm::kNvlsTree, Protocol::kSimple));
  // 8 channels of 40 GB/s * 0.85 * 7/8 * 2, times 8/14.
  const Candidate nvls = rated(one, Algorithm::kNvls, Protocol::kSimple, 1 << 30);
  CHECK(us(nvls.latency) == Approx(25.0));
  CHECK(nvls.bandwidth.value == Approx(8 * 40e9 * 0.85 * 7 / 8 * 2 * 8 / 14).epsilon(1e-3));
  CHECK(one.choose(1 << 30, nullptr, nullptr).algorithm == Algorithm::kNvls);
  const nccl::Model four(h100(), 32);
  CHECK(four.allows(Algorithm::kNvlsTree, Protocol::kSimple));
  CHECK_FALSE(four.allows(Algorithm::kNvls, Protocol::kSimple));
  const nccl::Model ampere(a100(), 8);
  CHECK_FALSE(ampere.allows(Algorithm::kNvls, Protocol::kSimple));
}

TEST_CASE("LL128 needs NVLink inside a node and GPUDirect between nodes") {
  ClusterSpec cluster = a100();
  CHECK(nccl::Model(cluster, 16).allows(Algorithm::kRing, Protocol::kLl128));
  cluster.gpu_direct = false;
  CHECK(nccl::Model(cluster, 8).allows(Algorithm::kRing, Protocol::kLl128));
  CHECK_FALSE(nccl::Model(cluster, 16).allows(Algorithm::kRing, Protocol::kLl128));
  cluster.node_topology = ClusterSpec::NodeTopology::kPcieTree;
  CHECK_FALSE(nccl::Model(cluster, 8).allows(Algorithm::kRing, Protocol::kLl128));
  const Protocol ll128 = Protocol::kLl128;
  CHECK_THROWS_WITH(nccl::Model(cluster, 8).choose(1, nullptr, &ll128),
                    contains("LL128 needs NVLink"));
}

TEST_CASE("small messages keep few channels") {
  const nccl::Model model(a100(), 8);
  // LL in a ring: 512 threads * 8 B * 8 ranks = 32 KiB for each channel.
  CHECK(rated(model, Algorithm::kRing, Protocol::kLl, 1 << 30).channels == 24);
  CHECK(rated(model, Algorithm::kRing, Protocol::kLl, 10 * 32768).channels == 10);
  CHECK(rated(model, Algorithm::kRing, Protocol::kLl, 8).channels == 1);
  CHECK(rated(model, Algorithm::kRing, Protocol::kSimple, 5 * 32768).channels == 5);
}

TEST_CASE("the explanation lists what was rated and marks what was chosen") {
  const nccl::Model model(a100(), 8);
  const std::string text = explain(model, 1024, model.choose(1024, nullptr, nullptr));
  CHECK_THAT(text, contains("ring       ll") && contains("<- chosen") && contains("tree"));
}
