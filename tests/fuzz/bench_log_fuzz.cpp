// Damaged logs: whatever the bytes, reading a benchmark's log ends with a table or an Error.
//
//     bench_log_fuzz ITERATIONS [SEED]     a number of rounds, the same on every machine (CTest)
//     bench_log_fuzz SECONDSs [SEED]       for so many seconds, by hand: bench_log_fuzz 600s
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/bench_log.hpp"
#include "gradsync/predict/fit.hpp"
#include "tests/fuzz/damage.hpp"
#include "tests/support/bench_logs.hpp"

namespace {

using namespace gradsync;

std::vector<std::string> logs() {
  test::MadeLog log;
  test::MadeLog several = log;
  several.nodes = 2;
  several.test = "all_reduce_perf";
  BenchTable own{"gradsync bench allreduce on gloo", 4, {}};
  for (Bytes bytes = 1024; bytes <= 65536; bytes *= 2) {
    BenchRow row;
    row.bytes = bytes;
    row.time = Seconds(1e-4);
    own.rows.push_back(row);
  }
  std::string tagged;
  for (const std::string& line : test::made_lines(log)) {
    tagged += "[1,0]<stdout>:\x1b[1m" + line + "\r\n";
  }
  return {test::made_text(log), test::made_text(log) + test::made_text(several), tagged,
          to_json(own).dump()};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string amount = argc > 1 ? argv[1] : "20000";
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const bool timed = amount.ends_with('s');
  const auto limit = std::strtoll(amount.c_str(), nullptr, 10);
  std::mt19937_64 random(seed);
  const std::vector<std::string> texts = logs();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timed ? limit : 0);
  long long rounds = 0, read = 0;
  while (timed ? std::chrono::steady_clock::now() < end : rounds < limit) {
    std::string text = texts[static_cast<std::size_t>(rounds) % texts.size()];
    for (std::uint64_t times = 1 + random() % 4; times > 0; --times) {
      text = test::damage(std::move(text), random);
    }
    ++rounds;
    try {
      const BenchTable table = read_bench_log(text, "log");
      if (table.ranks < 2 || table.rows.empty()) return EXIT_FAILURE;
      ++read;
      describe(PiecewiseFit(table.rows), table.ranks);
    } catch (const Error&) {
      continue;  // said what is wrong with it
    }
  }
  std::cout << rounds << " rounds, " << read << " damaged logs could be read, no crash\n";
  return EXIT_SUCCESS;
}
