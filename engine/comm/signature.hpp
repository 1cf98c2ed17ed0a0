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
/// The signature of an alltoall has no number of elements, because ranks may pass different ones:
/// each pair of ranks compares what one sends with what the other expects.
///
/// "allreduce (sum) of 1567208 float32 elements, step 2 (epoch 0), bucket 1 (gradients)"
std::string signature(const CollectiveRecord& record);

/// Whether two signatures match: equal, or those of a send and a recv of the same data.
bool signatures_match(const std::string& a, const std::string& b);

/// signatures_match(signature(a), signature(b)), without building the strings.
bool same_signature(const CollectiveRecord& a, const CollectiveRecord& b);

/// The cause of a kDesync error, naming both ranks' collectives. The same text on every backend.
std::string describe_mismatch(std::int64_t sequence, int rank_a, const std::string& signature_a,
                              int rank_b, const std::string& signature_b);

/// The same for an alltoall in which `sender` has `sent` elements for `receiver`, which expects
/// `expected`.
std::string describe_split_mismatch(const CollectiveRecord& record, int sender, std::int64_t sent,
                                    int receiver, std::int64_t expected);

}  // namespace gradsync
