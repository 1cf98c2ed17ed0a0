// What must hold of NCCL's times whatever the constants: over the clusters that come with gradsync,
// and over random ones.

#include <filesystem>
#include <random>

#include "gradsync/simulator/collective/analytic.hpp"
#include "gradsync/simulator/platform/links.hpp"
#include "tests/sim/algorithm_cases.hpp"
#include "tests/support/paths.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

/// All-reduces on one cluster, timed by the closed form.
class Timer {
 public:
  Timer(const ClusterSpec& cluster, int ranks, const CommunicationSpec& communication = {})
      : links_(make_structural_links(cluster, ranks)),
        timer_(*links_),
        planner_(cluster, communication, ranks,
                 [this](int from, int to) { return links_->latency(from, to); }) {}

  double us(double bytes) {
    const auto whole = static_cast<Bytes>(bytes) / 4 * 4;
    const auto plan = planner_.plan(allreduce_of(whole), false);
    way_ = plan->name;
    return timer_.duration(plan, whole).count() * 1e6;
  }
  const std::string& way() const noexcept { return way_; }

 private:
  std::unique_ptr<Links> links_;
  AnalyticTimer timer_;
  Planner planner_;
  std::string way_;
};

std::vector<ClusterSpec> shipped_gpu_clusters() {
  namespace fs = std::filesystem;
  const fs::path scenarios = fs::path(source_dir()) / "scenarios";
  std::vector<ClusterSpec> clusters;
  for (const auto& entry : fs::directory_iterator(scenarios / "clusters")) {
    const std::string name = entry.path().filename().string();
    const Scenario scenario =
        parse_scenario(R"({"backend": "sim", "ranks": 2, "cluster": "clusters/)" + name + "\"}",
                       "test.json", scenarios.string());
    if (scenario.cluster.library == ClusterSpec::Library::kGloo) continue;
    clusters.push_back(scenario.cluster);
  }
  REQUIRE(clusters.size() >= 22);
  return clusters;
}

/// Those of `all` that the cluster has: a machine without a network between nodes is one node.
std::vector<int> ranks_on(const ClusterSpec& cluster, const std::vector<int>& all) {
  const bool one_node = cluster.name == "8x4090" || cluster.name == "2x-pcie";
  std::vector<int> some;
  for (const int ranks : all) {
    if (!one_node || ranks <= cluster.gpus_per_node) some.push_back(ranks);
  }
  return some;
}

/// The time must not fall with the bandwidth of a link. Between two ways that are as good, NCCL's
/// own table decides (Planner::choose): that may change with the bandwidth, and is worth 5%.
void check_slower_links(const ClusterSpec& cluster, int ranks, double factor) {
  for (auto link : {&ClusterSpec::inter_node, &ClusterSpec::intra_node}) {
    if (link == &ClusterSpec::inter_node && ranks <= cluster.gpus_per_node) continue;
    for (double bytes = 4096; bytes <= 1024. * 1024 * 1024; bytes *= factor) {
      ClusterSpec slower = cluster;
      double least = Timer(slower, ranks).us(bytes);
      for (int i = 0; i < 8; ++i) {
        (slower.*link).bandwidth.value *= 0.83;
        Timer timer(slower, ranks);
        const double now = timer.us(bytes);
        if (now < 0.95 * least) {
          CAPTURE(cluster.name, ranks, bytes, (slower.*link).bandwidth.value, timer.way());
          CHECK(now >= 0.95 * least);
        }
        least = std::max(least, now);
      }
    }
  }
}

/// The largest fall of the time from one size to the next.
void check_growth(const ClusterSpec& cluster, int ranks, double factor) {
  Timer timer(cluster, ranks);
  double before = timer.us(1024);
  std::string way = timer.way();
  for (double bytes = 1024 * factor; bytes <= 1024. * 1024 * 1024; bytes *= factor) {
    const double now = timer.us(bytes);
    if (now < 0.9 * before) {
      CAPTURE(cluster.name, ranks, bytes, way, before, timer.way(), now);
      CHECK(now >= 0.9 * before);
    }
    before = now;
    way = timer.way();
  }
}

}  // namespace

TEST_CASE("no shipped cluster has a time that falls by more than 10 % with growing size") {
  for (const ClusterSpec& cluster : shipped_gpu_clusters()) {
    for (const int ranks : ranks_on(cluster, {2, 3, 8, 16, 72})) check_growth(cluster, ranks, 1.1);
    for (const int ranks : ranks_on(cluster, {4, 24, 144, 512})) check_growth(cluster, ranks, 2);
  }
}

TEST_CASE("a slower link makes no all-reduce of a shipped cluster faster") {
  for (const ClusterSpec& cluster : shipped_gpu_clusters()) {
    for (const int ranks : ranks_on(cluster, {8, 16, 64})) check_slower_links(cluster, ranks, 8);
  }
}

// Minutes: by hand and with the label slow (tests/CMakeLists.txt).
TEST_CASE("all sizes from 1 KiB to 1 GiB on 2 to 512 ranks of all shipped clusters", "[.whole]") {
  const std::vector<int> all = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 72, 96, 128, 144, 256, 512};
  for (const ClusterSpec& cluster : shipped_gpu_clusters()) {
    for (const int ranks : ranks_on(cluster, all)) {
      check_growth(cluster, ranks, 1.1);
      check_slower_links(cluster, ranks, 2);
    }
  }
}

TEST_CASE("a link's bandwidth and latency act as they should on random clusters, for one choice") {
  std::mt19937 random(20);
  const auto any = [&](double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<double>(0, 1)(random));
  };
  using Generation = ClusterSpec::Generation;
  for (int i = 0; i < 150; ++i) {
    ClusterSpec cluster;
    cluster.library = ClusterSpec::Library::kNccl;
    cluster.generation = std::array{Generation::kVolta, Generation::kAmpere, Generation::kHopper,
                                    Generation::kBlackwell}[random() % 4];
    cluster.gpus_per_node = 1 << random() % 4;
    cluster.nics_per_node = std::min<std::int64_t>(cluster.gpus_per_node, 1 << random() % 4);
    cluster.intra_node = {{any(10e9, 900e9)}, Seconds(0)};
    cluster.inter_node = {{any(0.1e9, 100e9)}, Seconds(any(1e-7, 1e-4))};
    const int ranks = static_cast<int>(cluster.gpus_per_node * (1 + random() % 9));
    if (ranks < 2) continue;
    CommunicationSpec way;
    way.algorithm = random() % 2 == 0 ? Algorithm::kRing : Algorithm::kTree;
    way.protocol =
        random() % 2 == 0 ? CommunicationSpec::Protocol::kSimple : CommunicationSpec::Protocol::kLl;
    const double bytes = any(1e3, 1e9);
    Timer timer(cluster, ranks, way);
    const double time = timer.us(bytes);
    CAPTURE(i, ranks, bytes, time, static_cast<int>(cluster.generation), cluster.gpus_per_node,
            cluster.nics_per_node, cluster.intra_node.bandwidth.value,
            cluster.inter_node.bandwidth.value, static_cast<int>(way.algorithm),
            static_cast<int>(way.protocol));
    // Another number of channels is another choice, whose chunks may be longer: not compared.
    const auto with = [&](auto change) {
      ClusterSpec changed = cluster;
      change(changed);
      Timer other(changed, ranks, way);
      const double changed_time = other.us(bytes);
      return other.way() == timer.way() ? changed_time : time;
    };
    constexpr double kRounding = 1 + 1e-9;
    CHECK(with([](ClusterSpec& c) { c.inter_node.bandwidth.value *= 1.4; }) <= time * kRounding);
    CHECK(with([](ClusterSpec& c) { c.intra_node.bandwidth.value *= 1.4; }) <= time * kRounding);
    CHECK(with([](ClusterSpec& c) { c.inter_node.latency *= 2; }) >= time / kRounding);
    CHECK(Timer(cluster, ranks, way).us(bytes * 1.1) >= time / kRounding);
    cluster.nics_per_node = 1;  // all that is there is then one switch, and one way to it
    check_growth(cluster, ranks, 1.5);
  }
}

TEST_CASE("bytes move at the rate of the link, whatever the table of speeds has") {
  ClusterSpec cluster;
  cluster.library = ClusterSpec::Library::kNccl;
  cluster.gpus_per_node = 1;
  cluster.gpu_direct = false;
  cluster.intra_node = {{50e9}, Seconds(0)};
  double before = 1e18;
  // NCCL's table has 1.2, 2.4 and 3 GB/s, and nothing between.
  for (const double gbps : {8., 9.4, 10., 15., 18., 20., 40.}) {
    cluster.inter_node = {{gbps / 8 * 1e9}, Seconds(0)};
    constexpr double kBytes = 102e6;
    const double us = Timer(cluster, 2).us(kBytes);
    CAPTURE(gbps, us);
    CHECK(us < before);
    CHECK(us == Approx(kBytes / (gbps / 8 * 1e9) * 1e6).epsilon(0.03));
    before = us;
  }
}

TEST_CASE("no step of NCCL's table of speeds shows in the time, whatever the cluster") {
  struct Kind {
    const char* name;
    ClusterSpec cluster;
    int ranks;
    double most_gbps;  // beyond it, others than the adapters are the limit
  };
  ClusterSpec one_each = hopper_nodes(1, 1);
  ClusterSpec old = hopper_nodes(1, 1);
  old.generation = ClusterSpec::Generation::kVolta;
  ClusterSpec efa = hopper_nodes(8, 4);
  efa.network.kind = ClusterSpec::NetworkKind::kEfa;
  efa.generation = ClusterSpec::Generation::kAmpere;
  const std::vector<Kind> kinds = {{"two Hoppers", one_each, 2, 50},
                                   {"three Hoppers", one_each, 3, 50},
                                   {"two Voltas", old, 2, 12},
                                   {"2 x 8, one adapter", hopper_nodes(8, 1), 16, 50},
                                   {"4 x 8, EFA", efa, 32, 25}};
  for (const Kind& kind : kinds) {
    // bytes x seconds = constant, where the link is the limit: no step of the table may show in it.
    double before = 0;
    for (double gbps = 0.9; gbps < kind.most_gbps; gbps *= 1.03) {
      ClusterSpec cluster = kind.cluster;
      cluster.inter_node = {{gbps * 1e9}, Seconds(0)};
      Timer timer(cluster, kind.ranks);
      const double product = timer.us(512e6) * gbps;
      CAPTURE(kind.name, gbps, timer.way(), product, before);
      if (before > 0) CHECK(product == Approx(before).epsilon(0.08));
      before = product;
    }
  }
}

TEST_CASE("a forced tree has the channels that an adapter of 400 Gb/s needs") {
  ClusterSpec cluster = hopper_nodes(1, 1);
  CommunicationSpec way;
  way.algorithm = Algorithm::kTree;
  constexpr double kBytes = 4e9;
  CHECK(kBytes / Timer(cluster, 2, way).us(kBytes) / 1e3 > 40);  // GB/s
}

TEST_CASE("NVLS has nearly the same algorithm bandwidth for 4 GPUs and for 64") {
  ClusterSpec cluster = hopper_nodes(64, 64);
  cluster.generation = ClusterSpec::Generation::kBlackwell;
  cluster.intra_node = {{721.8e9}, Seconds(0)};
  constexpr double kBytes = 16. * (1 << 30);
  std::vector<double> gbps;
  for (const int ranks : {4, 8, 16, 64}) {
    Timer timer(cluster, ranks);
    gbps.push_back(kBytes / timer.us(kBytes) / 1e3);
    CHECK_THAT(timer.way(), contains("nvls"));
  }
  CHECK(*std::max_element(gbps.begin(), gbps.end()) <
        1.08 * *std::min_element(gbps.begin(), gbps.end()));
}
