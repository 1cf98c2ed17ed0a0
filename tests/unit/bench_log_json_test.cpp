// The JSON that nccl-tests writes with -J.
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/bench_log.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;
using Json = nlohmann::ordered_json;

/// As nccl-tests writes it: numbers as text here and there, the first device of each process alone.
Json made_json(int processes, int gpus_each, const std::string& program = "./all_reduce_perf") {
  const int ranks = processes * gpus_each;
  Json devices = Json::array();
  for (int p = 0; p < processes; ++p) {
    devices.push_back({{"rank", p * gpus_each},
                       {"group", 0},
                       {"pid", 900 + p},
                       {"hostname", "node-" + std::to_string(p)},
                       {"device", 0},
                       {"device_hex", "0000:0f:00"},
                       {"device_info", "NVIDIA H100 80GB HBM3"}});
  }
  Json results = Json::array();
  for (long long bytes = 1 << 20; bytes <= 1 << 26; bytes *= 8) {
    const double time = 40 + static_cast<double>(bytes) / 200e3;
    const double algbw = static_cast<double>(bytes) / time / 1e3;
    const Json measured = {{"time", time},
                           {"alg_bw", algbw},
                           {"bus_bw", algbw * 2 * (ranks - 1) / ranks},
                           {"nwrong", 0.0}};
    results.push_back({{"size", bytes},
                       {"count", bytes / 4},
                       {"type", "float"},
                       {"redop", "sum"},
                       {"root", "    -1"},
                       {"out_of_place", measured},
                       {"out_of_place_per_iter", {{"p50_us", time * 0.9}}},
                       {"in_place", measured},
                       {"actual_iterations", 20}});
  }
  return {
      {"version", 3},
      {"start_time", "2025-05-02 10:11:12"},
      {"args", {program, "-b", "1M", "-J", "out.json"}},
      {"env", {"HOME=/root", "PATH=/bin"}},
      {"nccl_version", 22704},
      {"config",
       {{"nthreads", 1}, {"ngpus", gpus_each}, {"minimum_bytes", 1048576}, {"devices", devices}}},
      {"results", results},
      {"out_of_bounds", {{"count", 0}, {"okay", "true"}}},
      {"average_bus_bandwidth", {{"bandwidth", 100.0}, {"okay", "unchecked"}}}};
}

}  // namespace

TEST_CASE("bench log: the JSON of -J names one device a process, and ranks are all of them") {
  for (const auto& [processes, gpus] : {std::pair{1, 8}, {2, 8}, {8, 1}, {64, 1}}) {
    CAPTURE(processes, gpus);
    const BenchTable table = read_bench_log(made_json(processes, gpus).dump(), "log.json");
    CHECK(table.program == "nccl-tests");
    CHECK(table.ranks == processes * gpus);
    CHECK(table.nodes == processes);
    CHECK(table.ranks_per_node == gpus);
    CHECK(table.device == "NVIDIA H100 80GB HBM3");
    REQUIRE(table.rows.size() == 3);
    CHECK(table.rows[0].time.count() == Approx(45.24e-6).epsilon(1e-3));
    CHECK(table.rows[0].median->count() == Approx(0.9 * table.rows[0].time.count()));
    CHECK(table.rows[0].wrong == 0);
  }
}

TEST_CASE("bench log: the JSON of -C has CPU times, and devices may all be listed") {
  const std::string json = R"({"config": {"devices": [{"rank": 0}, {"rank": 1}]},
    "results": [{"size": 1024, "count": 256, "type": "float", "redop": "sum", "root": "-1",
      "out_of_place": {"cpu_time": 40.5, "alg_bw": 0.03, "bus_bw": "nan", "nwrong": null},
      "in_place": {"time": 39.0, "alg_bw": 0.03, "bus_bw": 0.03, "nwrong": 0}}]})";
  const BenchTable table = read_bench_log(json, "log.json");
  CHECK(table.ranks == 2);
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].time.count() == Approx(40.5e-6));
  CHECK_FALSE(table.rows[0].wrong.has_value());
}

TEST_CASE("bench log: JSON of another collective is refused by its name") {
  CHECK_THROWS_WITH(read_bench_log(made_json(1, 8, "/opt/broadcast_perf").dump(), "b.json"),
                    contains("broadcast_perf"));
  Json reduce = made_json(1, 8, "perf");
  for (Json& row : reduce["results"]) row["root"] = "     0";
  CHECK_THROWS_WITH(read_bench_log(reduce.dump(), "r.json"), contains("root 0"));
}

TEST_CASE("bench log: JSON of a job that was ended has the rows that are whole") {
  const std::string text = made_json(2, 8).dump();
  const BenchTable table = read_bench_log(text.substr(0, text.rfind("\"in_place\"")), "log.json");
  CHECK(table.rows.size() == 2);
  CHECK_THAT(table.notes.at(0), contains("cut off"));
}

TEST_CASE("bench log: JSON of another form is refused with its place") {
  CHECK_THROWS_WITH(read_bench_log("{\"results\": [{}]}", "b.json"), contains("/results/0"));
  CHECK_THROWS_WITH(read_bench_log("{\"results\": 3}", "b.json"), contains("/results"));
  CHECK_THROWS_WITH(read_bench_log("{]", "c.json"), contains("not JSON"));
}

}  // namespace gradsync
