#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {

/// A failed collective. `code()` is kTimeout, kPeerFailed, kRankDied, kDesync or kInternal;
/// `what()` names the rank, sequence number, operation, elements, label and cause.
class CommError : public Error {
 public:
  CommError(ErrorCode code, int rank, CollectiveRecord record, const std::string& cause);

  int rank() const noexcept { return rank_; }
  const CollectiveRecord& record() const noexcept { return record_; }
  /// The cause alone, e.g. "timed out after 10 s" or "rank 2 died (signal 9)".
  const std::string& cause() const noexcept { return cause_; }

 private:
  int rank_;
  CollectiveRecord record_;
  std::string cause_;
};

/// This rank could not connect to other ranks. `code()` is kTimeout.
class ConnectError : public Error {
 public:
  ConnectError(const std::string& what, std::vector<int> unreachable)
      : Error(ErrorCode::kTimeout, what), unreachable_(std::move(unreachable)) {}

  /// The ranks known to be at fault; empty if unknown.
  const std::vector<int>& unreachable() const noexcept { return unreachable_; }

 private:
  std::vector<int> unreachable_;
};

}  // namespace gradsync
