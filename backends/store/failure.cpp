#include "gradsync/backends/store/failure.hpp"

#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/json_text.hpp"

namespace gradsync {
namespace {

constexpr const char* kFailureKey = "failure";
constexpr const char* kEndKey = "end";
constexpr const char* kEndedRanksKey = "ended_ranks";

std::string ended_key(int rank) {
  return fmt::format("ended/{}", rank);
}

std::string to_text(const Failure& failure) {
  return dump_json({{"rank", failure.rank},
                    {"code", static_cast<int>(failure.code)},
                    {"cause", failure.cause},
                    {"time", failure.time.count()}});
}

Failure from_text(const std::string& text) {
  try {
    const auto json = parse_json(text);
    return {json.at("rank").get<int>(), static_cast<ErrorCode>(json.at("code").get<int>()),
            json.at("cause").get<std::string>(), Seconds(json.at("time").get<double>())};
  } catch (const nlohmann::ordered_json::exception& e) {
    return {-1, ErrorCode::kInternal,
            fmt::format("the store's failure record cannot be read ({}): {}", e.what(), text),
            Seconds(0)};
  }
}

}  // namespace

std::string Failure::describe() const {
  return rank < 0 ? cause : fmt::format("rank {} {}", rank, cause);
}

CommError error_for(const Failure& failure, int rank, const CollectiveRecord& record) {
  switch (failure.code) {
    case ErrorCode::kRankDied:
      return CommError(ErrorCode::kRankDied, rank, record, failure.describe());
    case ErrorCode::kDesync:
      return CommError(ErrorCode::kDesync, rank, record, failure.cause);
    default:
      break;
  }
  if (failure.rank == rank) return CommError(failure.code, rank, record, failure.cause);
  return CommError(ErrorCode::kPeerFailed, rank, record,
                   fmt::format("rank {} failed first: {}", failure.rank, failure.cause));
}

Failure publish_failure(Store& store, Failure failure, Seconds timeout) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  failure.time = std::chrono::duration_cast<Seconds>(now);
  const std::string held = store.compare_set(kFailureKey, "", to_text(failure), timeout);
  // Waiters wait for this key, because PyTorch's older server does not wake waiters of a key that
  // compare_set creates.
  store.set(kEndKey, "failure", timeout);
  return from_text(held);
}

std::optional<Failure> find_failure(Store& store, Seconds timeout) {
  if (!store.check({kFailureKey}, timeout)) return std::nullopt;
  return from_text(store.get(kFailureKey, timeout));
}

void announce_end(Store& store, int rank, int world_size, Seconds timeout) {
  store.set(ended_key(rank), "", timeout);
  if (store.add(kEndedRanksKey, 1, timeout) == world_size) store.set(kEndKey, "all", timeout);
}

std::optional<Failure> wait_for_end(Store& store, Seconds timeout) {
  store.wait({kEndKey}, timeout);
  constexpr Seconds kAnswerTime{5};
  return find_failure(store, kAnswerTime);
}

std::vector<int> ranks_not_ended(Store& store, int world_size, Seconds timeout) {
  std::vector<int> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!store.check({ended_key(rank)}, timeout)) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace gradsync
