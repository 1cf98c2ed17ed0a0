// What `gradsync bench` measures, checks and prints.
#include <span>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/allreduce_bench.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thread_process_group.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;

AllreduceBench small_bench() {
  AllreduceBench bench;
  bench.min_bytes = 8;
  bench.max_bytes = 512;
  bench.factor = 8;
  bench.warmup = 1;
  bench.iterations = 3;
  return bench;
}

/// Test double: a group of one rank, on which an all-reduce takes 2 ms and, when it is told to,
/// spoils one element of data that is not zero.
class SpoilingGroup final : public ProcessGroup {
 public:
  SpoilingGroup(Clock& clock, bool spoils)
      : ProcessGroup(0, 1, "default_pg", clock, std::make_shared<FlightRecorder>()),
        spoils_(spoils) {}
  std::string backend_name() const override { return "spoiling"; }
  void shutdown() override { shut_down = true; }
  bool shut_down = false;

 protected:
  WorkPtr do_allreduce(Tensor tensor, ReduceOp, const CollectiveRecord&) override {
    clock().advance(Seconds(2e-3));
    auto values = tensor.span<float>();
    if (spoils_ && values.size() > 1 && values[1] != 0) values[1] += 1;
    return completed_work();
  }
  WorkPtr do_broadcast(Tensor, int, const CollectiveRecord&) override { return completed_work(); }
  WorkPtr do_allgather(Tensor output, Tensor input, const CollectiveRecord&) override {
    Tensor first = output.slice(0, input.shape());
    cpu_device().copy(first, input);
    return completed_work();
  }
  WorkPtr do_barrier(const CollectiveRecord&) override { return completed_work(); }

 private:
  bool spoils_;
};

std::vector<BenchRow> rows_of(SpoilingGroup& group, Clock& clock, const AllreduceBench& bench) {
  RankRuntime runtime;
  runtime.process_group = &group;
  runtime.clock = &clock;
  runtime.device = &cpu_device();
  RankReport report;
  std::vector<BenchRow> rows;
  run_allreduce_bench(bench, runtime, report, [&](const BenchRow& row) { rows.push_back(row); });
  CHECK(report.state == RankState::kFinished);
  CHECK(group.shut_down);
  return rows;
}

}  // namespace

TEST_CASE("allreduce bench: sizes are whole elements, each once") {
  AllreduceBench bench = small_bench();
  CHECK(bench_sizes(bench) == std::vector<Bytes>{8, 64, 512});
  bench.min_bytes = 1;
  bench.max_bytes = 16;
  bench.factor = 2;
  CHECK(bench_sizes(bench) == std::vector<Bytes>{4, 8, 16});
  bench.factor = 1;
  CHECK_THROWS_AS(bench_sizes(bench), Error);
  bench.factor = 2;
  bench.min_bytes = 32;
  CHECK_THROWS_AS(bench_sizes(bench), Error);
}

TEST_CASE("allreduce bench: results of real sums are right in every dtype") {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                            DType::kInt32, DType::kInt64, DType::kUInt8}) {
    CAPTURE(to_string(dtype));
    AllreduceBench bench = small_bench();
    bench.dtype = dtype;
    std::vector<BenchRow> rows;
    test::run_ranks(3, [&](test::RankContext& context) {
      RankRuntime runtime;
      runtime.process_group = &context.group;
      runtime.clock = &context.clock;
      runtime.device = &cpu_device();
      RankReport report;
      run_allreduce_bench(bench, runtime, report,
                          [&](const BenchRow& row) { rows.push_back(row); });
    });
    REQUIRE(rows.size() == 3);
    for (const BenchRow& row : rows) {
      CHECK(row.wrong == 0);
      CHECK(row.bytes == row.count * static_cast<Bytes>(element_size(dtype)));
    }
  }
}

TEST_CASE("allreduce bench: time is that of one all-reduce; a wrong element is counted") {
  test::FakeClock clock;
  SpoilingGroup honest(clock, false);
  for (const BenchRow& row : rows_of(honest, clock, small_bench())) {
    CHECK(row.time.count() == Approx(2e-3));
    CHECK(row.median->count() == Approx(2e-3));
    CHECK(row.wrong == 0);
  }
  SpoilingGroup spoiling(clock, true);
  for (const BenchRow& row : rows_of(spoiling, clock, small_bench())) CHECK(row.wrong == 1);
  AllreduceBench unchecked = small_bench();
  unchecked.check = false;
  SpoilingGroup unseen(clock, true);
  for (const BenchRow& row : rows_of(unseen, clock, unchecked)) CHECK_FALSE(row.wrong.has_value());
}

TEST_CASE("allreduce bench: what comes before each all-reduce is counted, and part of its time") {
  test::FakeClock clock;
  SpoilingGroup group(clock, false);
  RankRuntime runtime;
  runtime.process_group = &group;
  runtime.clock = &clock;
  runtime.device = &cpu_device();
  RankReport report;
  std::vector<std::int64_t> steps;
  run_allreduce_bench(
      small_bench(), runtime, report,
      [](const BenchRow& row) { CHECK(row.time.count() == Approx(5e-3)); },
      [&](std::int64_t step) {
        steps.push_back(step);
        clock.sleep(Seconds(3e-3));
      });
  // Three sizes, each with one all-reduce of warm-up and three that are timed.
  CHECK(steps == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
}

TEST_CASE("bench table: nccl-tests' bandwidths and columns") {
  BenchRow row;
  row.bytes = 1 << 20;
  row.count = 1 << 18;
  row.type = "float";
  row.time = Seconds(76.7e-6);
  row.wrong = 0;
  // 8 x A100: the published row says algbw 13.67, busbw 23.92.
  CHECK(algorithm_bandwidth(row) == Approx(13.67).epsilon(0.001));
  CHECK(bus_bandwidth(row, 8) == Approx(23.92).epsilon(0.001));
  const std::string line = bench_line(row, 8);
  CAPTURE(line);
  CHECK_THAT(line,
             contains("1048576        262144     float     sum      -1    76.70   13.67   23.92"));
  BenchTable table{"gradsync bench", 8, {row}};
  CHECK_THAT(bench_footer(table), contains("0 OK"));
  table.rows[0].wrong = 3;
  CHECK(wrong_elements(table) == 3);
  CHECK_THAT(bench_footer(table), contains("3 FAILED"));
  table.rows[0].wrong.reset();
  CHECK_THAT(bench_footer(table), contains("unchecked"));
  CHECK(to_json(table)["results"][0]["in_place"]["nwrong"].is_null());
}

TEST_CASE("bench sizes on the command line are nccl-tests'") {
  CHECK(parse_bench_size("8") == 8);
  CHECK(parse_bench_size("32K") == 32768);
  CHECK(parse_bench_size("128M") == 134217728);
  CHECK(parse_bench_size("1.5G") == 1610612736);
  CHECK(parse_bench_size("25MiB") == 26214400);
  CHECK(parse_bench_size("10MB") == 10000000);
  for (const char* wrong : {"", "M", "12Q", "-5", "0"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_bench_size(wrong), Error);
  }
}

}  // namespace gradsync
