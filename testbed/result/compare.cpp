#include "gradsync/testbed/result/compare.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/comm/signature.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "gradsync/testbed/record/json_fields.hpp"
#include "gradsync/testbed/record/json_lines.hpp"
#include "gradsync/testbed/record/step_json.hpp"
#include "gradsync/testbed/result/events.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Hashes = std::map<std::int64_t, std::string>;  // by step; empty text if not computed

/// The part of a run directory that is compared.
struct RunContent {
  std::string backend;
  std::int64_t world_size = 0;
  std::map<int, std::vector<CollectiveRecord>> events;
  std::map<int, Hashes> hashes;
};

RunContent read_run(const std::string& directory) {
  RunContent run;
  const std::string result = fs::path(directory) / "result.json";
  if (!fs::exists(result)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} is not a run directory: it has no result.json", directory));
  }
  const Json json = try_parse_json(read_file(result));
  const JsonFields fields(json, result);
  fields.get("backend", run.backend);
  fields.get("world_size", run.world_size);
  run.events = read_events(directory);
  for_each_json_line(fs::path(directory) / "steps.jsonl",
                     [&](const Json& line, const std::string& place) {
                       int rank = 0;
                       JsonFields(line, place).get("rank", rank);
                       const StepRecord step = step_from_json(line, place);
                       run.hashes[rank][step.step] = step.parameter_hash;
                     });
  return run;
}

/// A difference and its position, to find the first one.
struct Difference {
  std::int64_t step;
  int order;  // within a step: collectives precede the resulting hash
  std::int64_t sequence;
  int rank;
  std::string text;

  friend bool operator<(const Difference& a, const Difference& b) {
    return std::tie(a.step, a.order, a.sequence, a.rank) <
           std::tie(b.step, b.order, b.sequence, b.rank);
  }
};

void keep_first(std::optional<Difference>& first, Difference found) {
  if (!first || found < *first) first = std::move(found);
}

bool same_parameters(const CollectiveRecord& a, const CollectiveRecord& b) {
  if (a.parameters == nullptr || b.parameters == nullptr) return a.parameters == b.parameters;
  return *a.parameters == *b.parameters;
}

/// "holds 3 parameters from c to a", for two collectives that are otherwise equal.
std::string describe_parameters(const CollectiveRecord& record) {
  if (record.parameters == nullptr || record.parameters->empty()) return "no parameters";
  return fmt::format("{} parameters from {} to {}", record.parameters->size(),
                     record.parameters->front(), record.parameters->back());
}

std::optional<Difference> compare_events(int rank, const std::vector<CollectiveRecord>& a,
                                         const std::vector<CollectiveRecord>& b) {
  const auto difference = [&](const CollectiveRecord& at, std::size_t index,
                              const std::string& text) {
    return Difference{at.label.step, 0, static_cast<std::int64_t>(index), rank,
                      fmt::format("rank {}, collective {}: {}", rank, index, text)};
  };
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < common; ++i) {
    const std::string in_a = signature(a[i]);
    const std::string in_b = signature(b[i]);
    if (in_a != in_b) {
      return difference(a[i], i, fmt::format("{} in the first run, {} in the second", in_a, in_b));
    }
    if (!same_parameters(a[i], b[i])) {
      return difference(a[i], i,
                        fmt::format("{} holds {} in the first run, {} in the second", in_a,
                                    describe_parameters(a[i]), describe_parameters(b[i])));
    }
  }
  if (a.size() == b.size()) return std::nullopt;
  const bool a_longer = a.size() > b.size();
  const CollectiveRecord& extra = a_longer ? a[common] : b[common];
  return difference(
      extra, common,
      fmt::format("{} in the {} run only", signature(extra), a_longer ? "first" : "second"));
}

std::optional<Difference> compare_hashes(int rank, const Hashes& a, const Hashes& b,
                                         std::int64_t& compared) {
  for (const auto& [step, hash] : a) {
    const auto other = b.find(step);
    if (other == b.end() || hash.empty() || other->second.empty()) continue;
    ++compared;
    if (hash != other->second) {
      return Difference{step, 1, 0, rank,
                        fmt::format("rank {}, step {}: parameter hash {} in the first run, {} in "
                                    "the second; the collectives up to there are the same",
                                    rank, step, hash, other->second)};
    }
  }
  return std::nullopt;
}

std::int64_t last_step(const std::map<int, Hashes>& hashes) {
  std::int64_t last = -1;
  for (const auto& [rank, steps] : hashes) {
    if (!steps.empty()) last = std::max(last, steps.rbegin()->first);
  }
  return last;
}

std::string describe_equality(const Comparison& result, std::int64_t steps) {
  if (steps > 0 && result.hashes == result.ranks * steps) {
    return fmt::format(
        "equal: same parameter hash after each of {} steps and same collectives ({} in all) on {} "
        "ranks",
        steps, result.events, result.ranks);
  }
  return fmt::format("equal: {} collectives and {} parameter hashes on {} ranks over {} steps",
                     result.events, result.hashes, result.ranks, steps);
}

}  // namespace

Comparison compare_runs(const std::string& directory_a, const std::string& directory_b) {
  const RunContent a = read_run(directory_a);
  const RunContent b = read_run(directory_b);
  Comparison result;
  if (a.backend != b.backend) {
    result.notes.push_back(
        fmt::format("the first run is on {}, the second on {}", a.backend, b.backend));
  }
  if (a.world_size != b.world_size) {
    result.summary =
        fmt::format("{} ranks in the first run, {} in the second", a.world_size, b.world_size);
    return result;
  }
  std::optional<Difference> first;
  static const std::vector<CollectiveRecord> kNoEvents;
  static const Hashes kNoHashes;
  for (int rank = 0; rank < a.world_size; ++rank) {
    const auto events_a = a.events.find(rank);
    const auto events_b = b.events.find(rank);
    if (events_a == a.events.end() && events_b == b.events.end()) continue;
    ++result.ranks;
    const auto& list_a = events_a == a.events.end() ? kNoEvents : events_a->second;
    const auto& list_b = events_b == b.events.end() ? kNoEvents : events_b->second;
    result.events += static_cast<std::int64_t>(std::min(list_a.size(), list_b.size()));
    if (auto found = compare_events(rank, list_a, list_b)) keep_first(first, std::move(*found));

    const auto hashes_a = a.hashes.find(rank);
    const auto hashes_b = b.hashes.find(rank);
    auto found =
        compare_hashes(rank, hashes_a == a.hashes.end() ? kNoHashes : hashes_a->second,
                       hashes_b == b.hashes.end() ? kNoHashes : hashes_b->second, result.hashes);
    if (found) keep_first(first, std::move(*found));
  }
  if (result.ranks < a.world_size) {
    result.notes.push_back(fmt::format("the runs keep details of {1} of their {0} ranks only",
                                       a.world_size, result.ranks));
  }
  if (result.hashes == 0) result.notes.push_back("no step has a parameter hash in both runs");
  const std::int64_t steps_a = last_step(a.hashes) + 1;
  const std::int64_t steps_b = last_step(b.hashes) + 1;
  if (steps_a != steps_b) {
    result.notes.push_back(
        fmt::format("the first run has {} steps, the second {}", steps_a, steps_b));
  }
  result.equal = !first;
  result.summary = first ? "first difference: " + first->text : describe_equality(result, steps_a);
  return result;
}

}  // namespace gradsync
