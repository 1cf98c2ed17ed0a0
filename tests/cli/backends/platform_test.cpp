// SimGrid platform files that are wrong, or whose hosts and links go off: a sentence and an exit
// status, whatever SimGrid thinks of them.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;
namespace fs = std::filesystem;

namespace {

const std::string kHosts = R"(<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>)";
const std::string kWire = R"(<link id="wire" bandwidth="1GBps" latency="10us"/>)";
const std::string kRoute = R"(<route src="a" dst="b"><link_ctn id="wire"/></route>)";

std::string full_zone(const std::string& content, const std::string& before = "") {
  return "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\">" +
         before + "<zone id=\"z\" routing=\"Full\">" + content + "</zone></platform>\n";
}

struct Platform {
  TemporaryDirectory folder;
  std::string file = folder.path() / "platform.xml";
  explicit Platform(const std::string& xml) { std::ofstream(file) << xml; }
  void add(const std::string& name, const std::string& text) const {
    std::ofstream(fs::path(folder.path()) / name) << text;
  }
  CommandResult bench(int ranks) const {
    return run_command({"bench", "allreduce", "--backend", "sim", "--ranks", std::to_string(ranks),
                        "-b", "4M", "-e", "4M", "--set", "cluster.platform_file=" + file});
  }
};

void check_refused(const std::string& xml, const std::string& sentence, int ranks = 2) {
  const Platform platform(xml);
  const CommandResult result = platform.bench(ranks);
  CAPTURE(xml, result.err);
  CHECK(result.exit_status == 2);
  CHECK_THAT(result.err, contains("/cluster/platform_file") && contains(sentence));
  CHECK_THAT(result.err, !contains("Backtrace") && !contains("CRITICAL"));
}

}  // namespace

TEST_CASE("platform file: what SimGrid would abort on is refused with its place") {
  const std::string three = kHosts + R"(<host id="c" speed="1Gf"/>)";
  check_refused(full_zone(three + kWire + kRoute), "no route between hosts a and c", 3);
  check_refused(full_zone(R"(<host id="a" speed="1Gf" state_file="gone.profile"/>)"
                          R"(<host id="b" speed="1Gf"/>)" +
                          kWire + kRoute),
                "gone.profile");
  check_refused(full_zone(kHosts + kWire + R"(<route src="a" dst="b"><link_ctn id="w"/></route>)"),
                "w");
  check_refused(full_zone(kHosts + kWire + kRoute, R"(<config><prop id="network/bandwidth-factor")"
                                                   R"( value="65472:0.94;15424:0.69"/></config>)"),
                "network/bandwidth-factor");
  check_refused(
      full_zone(kHosts + kWire + kRoute, R"(<config><prop id="no/such" value="1"/></config>)"),
      "no/such");
  check_refused(full_zone(kHosts + R"(<link id="wire" bandwidth="fast" latency="10us"/>)" + kRoute),
                "fast");
  check_refused(full_zone(kHosts + kWire + kRoute), "2 hosts", 3);
  check_refused("<zone", "SimGrid");
  check_refused("not XML at all", "SimGrid");
  check_refused("", "SimGrid");
}

TEST_CASE("platform file: zones without coordinates or routes, and Wi-Fi, are refused") {
  check_refused(
      "<?xml version='1.0'?><!DOCTYPE platform SYSTEM "
      "\"https://simgrid.org/simgrid.dtd\"><platform version=\"4.1\"><zone id=\"z\" "
      "routing=\"None\">" +
          kHosts + "</zone></platform>",
      "hosts a and b");
  check_refused(
      "<?xml version='1.0'?><!DOCTYPE platform SYSTEM "
      "\"https://simgrid.org/simgrid.dtd\"><platform version=\"4.1\"><zone id=\"z\" "
      "routing=\"Vivaldi\"><peer id=\"a\" speed=\"1Gf\" bw_in=\"1GBps\" bw_out=\"1GBps\"/>"
      "<peer id=\"b\" speed=\"1Gf\" bw_in=\"1GBps\" bw_out=\"1GBps\"/>"
      "</zone></platform>",
      "platform");
  check_refused(
      "<?xml version='1.0'?><!DOCTYPE platform SYSTEM "
      "\"https://simgrid.org/simgrid.dtd\"><platform version=\"4.1\"><zone id=\"w\" "
      "routing=\"Wifi\"><prop id=\"access_point\" value=\"router\"/>" +
          kHosts +
          "<router id=\"router\"/><link id=\"air\" sharing_policy=\"WIFI\" "
          "bandwidth=\"54Mbps,36Mbps\" latency=\"0ms\"/></zone></platform>",
      "hosts a and b");
}

TEST_CASE("platform file: a host that goes off is a rank that died, not one that stalls") {
  const Platform platform(full_zone(R"(<host id="a" speed="1Gf" state_file="off.txt"/>)"
                                    R"(<host id="b" speed="1Gf"/>)" +
                                    kWire + kRoute));
  platform.add("off.txt", "0.0005 0\n");
  const CommandResult bench = platform.bench(2);
  CAPTURE(bench.err);
  CHECK(bench.exit_status == 6);
  CHECK_THAT(bench.err, contains("rank 0 died: its host a went off at 0.5ms"));

  const std::string scenario = fs::path(platform.folder.path()) / "s.json";
  std::ofstream(scenario)
      << R"({"backend": "sim", "ranks": 2, "data": {"samples": 64, "seq_len": 8},
    "train": {"batch_size": 4, "max_steps": 3}, "cluster": {"platform_file": "platform.xml"}})";
  const CommandResult run = run_command({"run", scenario, "--json"});
  CAPTURE(run.out, run.err);
  CHECK(run.exit_status == 6);
  const auto diagnosis = run.json().at("diagnosis");
  CHECK(diagnosis.at("kind") == "rank_died");
  CHECK(diagnosis.at("ranks").dump() == "[0]");

  // A host that is off from the start is no host.
  platform.add("off.txt", "0 0\n");
  const CommandResult never = platform.bench(2);
  CHECK(never.exit_status == 2);
  CHECK_THAT(never.err, contains("host a is off"));
}

TEST_CASE("platform file: a link that goes off for good is a network that fails") {
  const Platform platform(full_zone(
      kHosts + R"(<link id="wire" bandwidth="1GBps" latency="10us" state_file="off.txt"/>)" +
      kRoute));
  platform.add("off.txt", "0.0005 0\n");
  const std::string scenario = fs::path(platform.folder.path()) / "s.json";
  std::ofstream(scenario)
      << R"({"backend": "sim", "ranks": 2, "data": {"samples": 64, "seq_len": 8},
    "train": {"batch_size": 4, "max_steps": 3}, "cluster": {"platform_file": "platform.xml"}})";
  const CommandResult run = run_command({"run", scenario, "--json"});
  CAPTURE(run.out, run.err);
  CHECK(run.exit_status == 4);
  CHECK(run.json().at("diagnosis").at("kind") != "stalled_rank");
  CHECK_THAT(run.json().dump(), contains("link wire is off since 0.5ms"));
}
