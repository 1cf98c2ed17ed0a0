#pragma once

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace gradsync::test {

/// A log of nccl-tests as it would print the times of a line: latency + bytes / bandwidth.
struct MadeLog {
  int nodes = 1;
  int ranks_per_node = 8;
  double latency_us = 60;
  double gigabytes_per_second = 3;
  std::vector<long long> sizes{65536, 262144, 1048576, 4194304, 16777216, 67108864};
  std::string test;  ///< "all_reduce_perf": the line that newer versions print
  std::string device = "NVIDIA A100-SXM4-40GB";
  std::string type = "float";
  std::string redop = "sum";
  int root = -1;
  double bus_factor = 0;  ///< busbw / algbw; 0: of an all-reduce
  int count_share = 1;    ///< size / (count * element)
  int element = 4;
  bool list_devices = true;
  bool list_groups = true;
  double in_place_factor = 1;  ///< of the out-of-place time

  int ranks() const { return nodes * ranks_per_node; }
};

inline std::vector<std::string> made_header(const MadeLog& log) {
  std::vector<std::string> lines;
  if (!log.test.empty()) {
    lines.push_back("# nccl-tests version 2.17.6 nccl-headers=22704 nccl-library=22704");
    lines.push_back("# Collective test starting: " + log.test);
  }
  lines.push_back(
      fmt::format("# nThread 1 nGpus 1 minBytes {} maxBytes {} step: 4(factor) warmup "
                  "iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0",
                  log.sizes.front(), log.sizes.back()));
  lines.push_back("#");
  lines.push_back("# Using devices");
  for (int rank = 0; log.list_devices && rank < log.ranks(); ++rank) {
    lines.push_back(fmt::format("#  Rank {:2}{} Pid {:6} on {:>10} device {:2} [0x{:02x}] {}", rank,
                                log.list_groups ? " Group  0" : "", 4000 + rank,
                                fmt::format("node-{}", rank / log.ranks_per_node),
                                rank % log.ranks_per_node, 15 + rank % 8, log.device));
  }
  lines.push_back("#");
  lines.push_back(
      "#                                                              out-of-place     "
      "                  in-place          ");
  lines.push_back(
      "#       size         count      type   redop    root     time   algbw   busbw "
      "#wrong     time   algbw   busbw #wrong");
  lines.push_back(
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)   "
      "         (us)  (GB/s)  (GB/s)       ");
  return lines;
}

inline double made_time_us(const MadeLog& log, long long bytes) {
  return log.latency_us + static_cast<double>(bytes) / log.gigabytes_per_second / 1e3;
}

/// The row in the three pieces in which nccl-tests writes it.
inline std::vector<std::string> made_row_pieces(const MadeLog& log, long long bytes) {
  const double n = log.ranks();
  const double factor = log.bus_factor > 0 ? log.bus_factor : 2 * (n - 1) / n;
  const auto placement = [&](double time) {
    const double algbw = static_cast<double>(bytes) / time / 1e3;
    return fmt::format("  {:>7.2f}  {:>6.2f}  {:>6.2f}  {:>6}", time, algbw, algbw * factor, 0);
  };
  return {fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", bytes,
                      bytes / log.element / log.count_share, log.type, log.redop, log.root),
          placement(made_time_us(log, bytes)),
          placement(made_time_us(log, bytes) * log.in_place_factor)};
}

inline std::vector<std::string> made_lines(const MadeLog& log) {
  std::vector<std::string> lines = made_header(log);
  for (const long long bytes : log.sizes) {
    std::string row;
    for (const std::string& piece : made_row_pieces(log, bytes)) row += piece;
    lines.push_back(row);
  }
  lines.push_back("# Out of bounds values : 0 OK");
  lines.push_back("# Avg bus bandwidth    : 1.5");
  lines.push_back("#");
  return lines;
}

inline std::string joined(const std::vector<std::string>& lines, const std::string& end = "\n") {
  std::string text;
  for (const std::string& line : lines) text += line + end;
  return text;
}

inline std::string made_text(const MadeLog& log) {
  return joined(made_lines(log));
}

}  // namespace gradsync::test
