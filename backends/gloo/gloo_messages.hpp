#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <gloo/context.h>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

/// Messages between two ranks of a Gloo context, and what ranks compare before they move data.
/// All block until this rank is done; they throw TransferError.

/// Sends the signature of a send or recv to the other rank, and receives that one's. Returns the
/// received one if they do not match.
std::optional<std::string> exchange_with_peer(const std::shared_ptr<gloo::Context>& context,
                                              const CollectiveRecord& record,
                                              const std::string& signature);

/// The message of number `sequence` in its direction.
void gloo_send(const std::shared_ptr<gloo::Context>& context, std::int64_t sequence,
               const Tensor& tensor, int to);
void gloo_recv(const std::shared_ptr<gloo::Context>& context, std::int64_t sequence,
               const Tensor& tensor, int from);

struct SplitMismatch {
  int sender;
  std::int64_t sent;
  std::int64_t expected;
};
/// A collective: tells every rank how many elements it gets in an alltoall. Returns the first rank
/// that has another number for this one than `splits.output` expects.
std::optional<SplitMismatch> find_split_mismatch(const std::shared_ptr<gloo::Context>& context,
                                                 std::uint32_t tag, const AlltoallSplits& splits);

}  // namespace gradsync
