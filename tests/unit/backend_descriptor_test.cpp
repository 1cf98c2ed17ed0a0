// What backends can do, and what follows for the scenarios that they take.
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/scenario/backend_descriptor.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

using test::contains;

/// What is wrong with it on this backend; empty: nothing.
std::string mistake_on(const BackendDescriptor& backend, nlohmann::ordered_json scenario) {
  scenario["backend"] = backend.name;
  try {
    parse_scenario(scenario.dump(), "test.json", ".");
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("backends: those that there are, and no others, can stand in a scenario") {
  CHECK(scenario_schema().at("properties").at("backend").at("enum") == backend_names());
  for (const std::string& name : backend_names()) {
    CHECK(backend_descriptor(name).name == name);
    CHECK_FALSE(backend_descriptor(name).summary.empty());
  }
  CHECK_THROWS_WITH(backend_descriptor("mpi"), contains("\"mpi\"") && contains("gloo, nccl, sim"));
}

TEST_CASE("backends: a scenario is refused for what its backend's descriptor has not") {
  for (const BackendDescriptor& backend : backend_descriptors()) {
    CAPTURE(backend.name);
    CHECK(mistake_on(backend, nlohmann::ordered_json::object()).empty());
    const auto is_refused = [&](const char* scenario) {
      return !mistake_on(backend, nlohmann::ordered_json::parse(scenario)).empty();
    };
    const bool averages =
        backend.is_simulated ? backend_descriptor("nccl").averages : backend.averages;
    CHECK(is_refused(R"({"ddp": {"gradient_mean": "average"}, "cluster": {"library": "nccl"}})") !=
          averages);
    CHECK(is_refused(R"({"cluster": {"gpus_per_node": 1}, "faults": [{"kind": "link"}]})") !=
          backend.changes_links);
    CHECK(is_refused(R"({"cluster": {"gpus_per_node": 1},
                         "imperfections": {"links": [{"node": 0, "factor": 0.5}]}})") !=
          backend.changes_links);
    CHECK(is_refused(R"({"cluster": {"gpus_per_node": 1}, "imperfections": {"traffic": [{}]}})") !=
          backend.changes_links);
    CHECK(is_refused(R"({"faults": [{"kind": "slots"}]})") != backend.has_device_slots);
    CHECK(is_refused(R"({"faults": [{"kind": "rendezvous", "wrong_address": true}]})") !=
          backend.chooses_addresses);
    // A computed model takes the time that it takes, unless time is simulated.
    CHECK(is_refused(R"({"faults": [{"kind": "slow", "factor": 2}]})") != backend.is_simulated);
    CHECK(is_refused(R"({"imperfections": {"compute": {"spread": 0.1}}})") != backend.is_simulated);
  }
  CHECK_THAT(mistake_on(backend_descriptor("gloo"), {{"ddp", {{"gradient_mean", "average"}}}}),
             contains("gloo has no average"));
}

}  // namespace gradsync
