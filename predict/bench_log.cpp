#include "gradsync/predict/bench_log.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/bench_collective.hpp"
#include "gradsync/predict/bench_log_json.hpp"
#include "gradsync/predict/bench_log_text.hpp"
#include "gradsync/predict/repeats.hpp"

namespace gradsync {
namespace {

/// The placement of a communicator's ranks. nccl-tests can split its ranks into groups that each
/// form a communicator and all do the same.
struct Places {
  int ranks = 0;
  int nodes = 0;
  int ranks_per_node = 0;
  std::string device;
  std::string note;
};

Places places_of(const LoggedRun& run) {
  Places places;
  std::map<std::string, std::set<int>> hosts;
  int last_rank = -1;
  bool has_groups = false;
  for (const LoggedDevice& device : run.devices) {
    has_groups |= device.group != 0;
    if (device.group != 0) continue;
    hosts[device.host].insert(device.rank);
    last_rank = std::max(last_rank, device.rank);
    if (places.device.empty()) places.device = device.name;
  }
  int listed = 0;
  int least = last_rank + 1;
  for (const auto& [host, ranks] : hosts) {
    const int here = static_cast<int>(ranks.size());
    listed += here;
    least = std::min(least, here);
    places.ranks_per_node = std::max(places.ranks_per_node, here);
  }
  places.ranks = has_groups ? listed : last_rank + 1;
  if (listed < places.ranks) {
    places.note = fmt::format("the list of devices has {} of {} ranks", listed, places.ranks);
  } else if (least != places.ranks_per_node) {
    places.note = fmt::format("the nodes have {} to {} ranks each; a description has {} for all",
                              least, places.ranks_per_node, places.ranks_per_node);
  }
  if (places.ranks_per_node > 0 && !hosts.contains("")) {
    places.nodes = listed < places.ranks
                       ? (places.ranks + places.ranks_per_node - 1) / places.ranks_per_node
                       : static_cast<int>(hosts.size());
  } else {
    places.ranks_per_node = 0;
  }
  return places;
}

std::optional<LoggedTime> chosen(const LoggedRow& row, bool in_place) {
  const auto& wanted = in_place ? row.in_place : row.out_of_place;
  return wanted ? wanted : in_place ? row.out_of_place : row.in_place;
}

/// A run, or part of one, that is an all-reduce of a single type and operation.
struct Candidate {
  BenchTable table;
  std::string redop;
  std::string type;
  int runs = 1;

  auto key() const { return std::tie(table.ranks, table.nodes, table.ranks_per_node, type, redop); }
  std::string what() const {
    std::string where = table.nodes > 1 ? fmt::format(" on {} nodes", table.nodes) : "";
    return fmt::format("{} ranks{}, {}{}{}, {} sizes", table.ranks, where, type,
                       redop.empty() ? "" : " ", redop, table.rows.size());
  }
};

BenchRow bench_row(const LoggedRow& logged, bool in_place) {
  const LoggedTime time = *chosen(logged, in_place);
  BenchRow row;
  row.bytes = logged.bytes;
  row.count = logged.count;
  row.type = logged.type;
  row.time = time.time;
  row.median = time.median;
  row.wrong = time.wrong;
  return row;
}

/// A run may contain all-reduces of several types and operations in sequence.
std::vector<Candidate> candidates_of(const LoggedRun& run, const BenchTable& common,
                                     bool in_place) {
  std::vector<Candidate> candidates;
  for (const LoggedRow& row : run.rows) {
    auto same = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& other) {
      return other.redop == row.redop && other.type == row.type;
    });
    if (same == candidates.end()) {
      candidates.push_back({common, row.redop, row.type});
      same = candidates.end() - 1;
    }
    same->table.rows.push_back(bench_row(row, in_place));
  }
  return candidates;
}

/// Merges the rows into one per size, by size.
std::vector<BenchRow> one_row_a_size(const std::vector<BenchRow>& rows) {
  std::map<Bytes, std::vector<BenchRow>> by_size;
  for (const BenchRow& row : rows) by_size[row.bytes].push_back(row);
  std::vector<BenchRow> result;
  for (const auto& [bytes, same] : by_size) {
    BenchRow row = same.front();
    std::vector<Seconds> times, medians;
    for (const BenchRow& one : same) {
      times.push_back(one.time);
      if (one.median) medians.push_back(*one.median);
      if (one.wrong) row.wrong = std::max(row.wrong.value_or(0), *one.wrong);
    }
    row.time = median_of(times);
    if (!medians.empty()) row.median = median_of(medians);
    result.push_back(row);
  }
  return result;
}

class LogReader {
 public:
  LogReader(const std::string& name, const BenchLogOptions& options)
      : name_(name), options_(options) {}

  BenchTable read(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    const bool is_json = first != std::string::npos && text[first] == '{';
    const std::vector<LoggedRun> runs =
        is_json ? std::vector<LoggedRun>{read_log_json(text, name_)} : read_log_text(text);
    for (const LoggedRun& run : runs) add(run);
    Candidate& candidate = choose();
    BenchTable table = std::move(candidate.table);
    if (candidate.runs > 1) {
      notes_.push_back(fmt::format("{} runs of {} ranks: each size has the median of its times",
                                   candidate.runs, table.ranks));
    }
    table.rows = one_row_a_size(table.rows);
    table.notes.insert(table.notes.end(), notes_.begin(), notes_.end());
    return table;
  }

 private:
  void add(const LoggedRun& run) {
    if (!run.cut_off.empty()) {
      const std::size_t shown = std::min<std::size_t>(run.cut_off.size(), 5);
      notes_.push_back(fmt::format(
          "cut off, and left out: {}{}",
          fmt::join(run.cut_off.begin(), run.cut_off.begin() + static_cast<long>(shown), ", "),
          shown < run.cut_off.size() ? ", ..." : ""));
    }
    if (run.rows.empty()) return;
    const Places places = places_of(run);
    BenchTable table;
    table.program = run.program;
    table.device = places.device;
    table.ranks = options_.ranks ? *options_.ranks : run.ranks ? *run.ranks : places.ranks;
    if (table.ranks == places.ranks) {
      table.nodes = places.nodes;
      table.ranks_per_node = places.ranks_per_node;
      if (!places.note.empty()) table.notes.push_back(places.note);
    }
    if (const auto other = other_collective(run, table.ranks)) {
      others_.push_back(fmt::format("a table of {} ({})", other->name, other->sign));
      if (first_other_.empty()) first_other_ = run.rows.front().place;
      return;
    }
    if (table.ranks == 0) {
      table.ranks = implied_ranks(run).value_or(0);
      if (table.ranks > 0) {
        table.notes.push_back(fmt::format(
            "{} ranks, as busbw / algbw says: the log does not list them", table.ranks));
      }
    }
    for (Candidate& candidate : candidates_of(run, table, options_.in_place)) {
      merge(std::move(candidate));
    }
  }

  void merge(Candidate fresh) {
    const auto same =
        std::find_if(candidates_.begin(), candidates_.end(),
                     [&](const Candidate& other) { return other.key() == fresh.key(); });
    if (same == candidates_.end()) {
      candidates_.push_back(std::move(fresh));
      return;
    }
    same->runs += 1;
    same->table.rows.insert(same->table.rows.end(), fresh.table.rows.begin(),
                            fresh.table.rows.end());
  }

  Candidate& choose() {
    if (candidates_.empty()) refuse_empty();
    std::string list;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      list += fmt::format("\n  {}: {}", i + 1, candidates_[i].what());
    }
    const auto count = static_cast<int>(candidates_.size());
    const int number = options_.table.value_or(1);
    if (number < 1 || number > count || (!options_.table && count > 1)) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} has {} table{} of all-reduces; choose with --table:{}", name_,
                              count, count == 1 ? "" : "s", list));
    }
    for (const std::string& other : others_) notes_.push_back("left out: " + other);
    Candidate& candidate = candidates_[static_cast<std::size_t>(number - 1)];
    if (candidate.table.ranks < 2) refuse_ranks(candidate.table.ranks);
    return candidate;
  }

  [[noreturn]] void refuse_empty() const {
    if (!others_.empty()) {
      throw ConfigError({name_, first_other_, "a table of all-reduce", others_.front(),
                         "measure with all_reduce_perf"});
    }
    throw ConfigError({name_, "", "a table of nccl-tests or of gradsync bench",
                       notes_.empty() ? "no row of one" : notes_.front(), ""});
  }

  [[noreturn]] void refuse_ranks(int ranks) const {
    if (ranks == 1) {
      throw Error(ErrorCode::kUsage,
                  name_ +
                      " is a table of one rank: nothing is reduced. nccl-tests that was built "
                      "without MPI=1 runs once for each process of mpirun, alone");
    }
    throw Error(ErrorCode::kUsage,
                name_ +
                    " does not say between how many ranks (two at the least) it was measured; "
                    "say it with --ranks");
  }

  const std::string& name_;
  const BenchLogOptions& options_;
  std::vector<Candidate> candidates_;
  std::vector<std::string> notes_;
  std::vector<std::string> others_;
  std::string first_other_;
};

}  // namespace

BenchTable read_bench_log(const std::string& text, const std::string& name,
                          const BenchLogOptions& options) {
  return LogReader(name, options).read(text);
}

}  // namespace gradsync
