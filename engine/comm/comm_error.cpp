#include "gradsync/comm/comm_error.hpp"

#include <fmt/format.h>

namespace gradsync {
namespace {

std::string describe(int rank, const CollectiveRecord& r, const std::string& cause) {
  return fmt::format("rank {}: {} #{} of {} {} elements in {}, {}: {}", rank, to_string(r.op),
                     r.sequence, r.elements, to_string(r.dtype), r.group,
                     gradsync::describe(r.label), cause);
}

}  // namespace

CommError::CommError(ErrorCode code, int rank, CollectiveRecord record, const std::string& cause)
    : Error(code, describe(rank, record, cause)),
      rank_(rank),
      record_(std::move(record)),
      cause_(cause) {}

}  // namespace gradsync
