#pragma once

#include <optional>

#include "engine/diagnosis/diagnosis.hpp"
#include "engine/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// A rule knows one family of failures, in a file of its own: it gives a diagnosis without the
/// table if the digest shows that failure, else nothing. `diagnose` asks the rules in the order
/// below and takes the first answer, so a rule may rely on those before it having found nothing.
using Rule = std::optional<Diagnosis> (*)(const Digest& digest);

std::optional<Diagnosis> find_parameters_differ(const Digest& digest);  ///< parameters_differ
std::optional<Diagnosis> find_uneven_shards(const Digest& digest);      ///< uneven_shards
std::optional<Diagnosis> find_mismatch(const Digest& digest);           ///< mismatch
std::optional<Diagnosis> find_rank_died(const Digest& digest);          ///< rank_died
std::optional<Diagnosis> find_error(const Digest& digest);              ///< error
std::optional<Diagnosis> find_not_joined(const Digest& digest);         ///< not_joined
std::optional<Diagnosis> find_late_rank(const Digest& digest);          ///< late_rank
/// Always has an answer: what is known, and that it is not enough.
std::optional<Diagnosis> describe_unknown(const Digest& digest);  ///< unknown

}  // namespace gradsync::diagnosis
