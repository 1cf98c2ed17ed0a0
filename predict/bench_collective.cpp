#include "gradsync/predict/bench_collective.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gradsync/predict/bench_table.hpp"

namespace gradsync {
namespace {

/// "all_reduce_perf", "AllReduce", "allreduce" -> "allreduce"
std::string plain(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return result;
}

/// By the name of the benchmark program.
std::optional<OtherCollective> by_name(const LoggedRun& run) {
  constexpr std::array<std::pair<const char*, const char*>, 10> kOthers{
      {{"reducescatter", "reduce_scatter"},
       {"allgather", "all_gather"},
       {"alltoallv", "alltoallv"},
       {"alltoall", "alltoall"},
       {"broadcast", "broadcast"},
       {"sendrecv", "sendrecv"},
       {"hypercube", "hypercube"},
       {"scatter", "scatter"},
       {"gather", "gather"},
       {"reduce", "reduce"}}};
  const std::string name = plain(run.test);
  if (name.find("allreduce") != std::string::npos) return std::nullopt;
  for (const auto& [word, other] : kOthers) {
    if (name.find(word) != std::string::npos) {
      return OtherCollective{other, fmt::format("the log names {}", run.test)};
    }
  }
  return std::nullopt;
}

/// The factor between a row's count and the elements of its size.
std::optional<double> sizes_per_count(const LoggedRow& row) {
  const std::size_t element = bench_type_size(row.type);
  if (element == 0 || row.count <= 0 || row.bytes <= 0) return std::nullopt;
  return static_cast<double>(row.bytes) /
         (static_cast<double>(row.count) * static_cast<double>(element));
}

std::optional<OtherCollective> by_columns(const LoggedRow& row) {
  const bool reduces = row.redop != "none";
  if (row.root && *row.root >= 0) {
    return OtherCollective{reduces ? "reduce" : "broadcast, gather or scatter",
                           fmt::format("root {}, not -1, in {}", *row.root, row.place)};
  }
  // Sizes are rounded down to whole elements per rank; small ones may be far from a multiple.
  const auto ratio = sizes_per_count(row);
  const bool shares = ratio && *ratio > 1.5 && row.count >= 64;
  if (shares) {
    return OtherCollective{
        reduces && !row.redop.empty() ? "reduce_scatter" : "all_gather, alltoall or reduce_scatter",
        fmt::format("{} elements of {} are not {} bytes, in {}", row.count, row.type, row.bytes,
                    row.place)};
  }
  if (!reduces) {
    return OtherCollective{"all_gather, alltoall or sendrecv",
                           fmt::format("redop none in {}", row.place)};
  }
  return std::nullopt;
}

/// busbw / algbw of a row is between `least` and `most`, given the printed digits.
struct BandwidthRatio {
  double least;
  double most;
  std::string place;

  bool holds(double value) const { return value >= least && value <= most; }
};

/// For the rows that print both to 1% or better.
std::vector<BandwidthRatio> bandwidth_ratios(const LoggedRun& run) {
  // Bandwidths have two decimals; large ones have fewer, to fit the column.
  const auto last_digit = [](double value) { return value < 1000 ? 0.01 : value < 1e4 ? 0.1 : 1; };
  std::vector<BandwidthRatio> ratios;
  for (const LoggedRow& row : run.rows) {
    for (const auto& time : {row.out_of_place, row.in_place}) {
      if (!time || !time->algbw || !time->busbw || *time->algbw < 1 || *time->busbw < 1) continue;
      const double algbw = *time->algbw, busbw = *time->busbw;
      // Some programs truncate digits instead of rounding.
      const double margin = last_digit(algbw) / algbw + last_digit(busbw) / busbw;
      ratios.push_back({busbw / algbw * (1 - margin), busbw / algbw * (1 + margin), row.place});
    }
  }
  return ratios;
}

std::optional<OtherCollective> by_ratio(const LoggedRun& run, int ranks) {
  if (ranks < 2) return std::nullopt;
  const double n = ranks;
  for (const BandwidthRatio& ratio : bandwidth_ratios(run)) {
    if (ratio.holds(2 * (n - 1) / n)) continue;
    const std::string sign =
        fmt::format("busbw / algbw is {:.3g} in {}, not 2(n-1)/n = {:.3g}",
                    (ratio.least + ratio.most) / 2, ratio.place, 2 * (n - 1) / n);
    if (ratio.holds(1)) return OtherCollective{"reduce, broadcast or sendrecv", sign};
    if (ratio.holds((n - 1) / n)) {
      return OtherCollective{"reduce_scatter, all_gather or alltoall", sign};
    }
    return OtherCollective{fmt::format("another collective, or not of {} ranks", ranks), sign};
  }
  return std::nullopt;
}

}  // namespace

std::optional<OtherCollective> other_collective(const LoggedRun& run, int ranks) {
  if (auto found = by_name(run)) return found;
  for (const LoggedRow& row : run.rows) {
    if (auto found = by_columns(row)) return found;
  }
  return by_ratio(run, ranks);
}

std::optional<int> implied_ranks(const LoggedRun& run) {
  double least = 1.1, most = 2;  // other collectives also have a ratio of 1
  bool is_known = false;
  for (const BandwidthRatio& ratio : bandwidth_ratios(run)) {
    least = std::max(least, ratio.least);
    most = std::min(most, ratio.most);
    is_known = true;
  }
  if (!is_known || least > most || most >= 2) return std::nullopt;
  const double fewest = std::ceil(2 / (2 - least));
  if (fewest != std::floor(2 / (2 - most))) return std::nullopt;
  return static_cast<int>(fewest);
}

}  // namespace gradsync
