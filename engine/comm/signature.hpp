#pragma once

#include <cstdint>
#include <string>

#include "gradsync/comm/flight_recorder.hpp"

namespace gradsync {

/// Everything that must be equal on all ranks for their collectives to match: operation, elements,
/// dtype, reduction, root and (unless label_must_match is false) the label's epoch, step, micro
/// step, bucket and purpose. The phase and the call site are left out, because they may differ on a
/// rank that shadows others. Backends compare signatures before data moves.
///
/// "allreduce (sum) of 1567208 float32 elements, step 2 (epoch 0), bucket 1 (gradients)"
std::string signature(const CollectiveRecord& record);

/// signature(a) == signature(b), without building the strings.
bool same_signature(const CollectiveRecord& a, const CollectiveRecord& b);

/// The cause of a kDesync error, naming both ranks' collectives. The same text on every backend.
std::string describe_mismatch(std::int64_t sequence, int rank_a, const std::string& signature_a,
                              int rank_b, const std::string& signature_b);

}  // namespace gradsync
