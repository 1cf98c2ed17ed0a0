#pragma once

#include <optional>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"

namespace gradsync::diagnosis {

/// A rule detects one family of failures: it returns a diagnosis without the table if the digest
/// shows that failure, otherwise nullopt. `diagnose` runs the rules in the order below and takes
/// the first result, so a rule may assume that those before it found nothing. No rule looks at the
/// scenario's faults: all judge only by the ranks' records.
using Rule = std::optional<Diagnosis> (*)(const Digest& digest);

/// A diagnosis of that kind, with the kind's catalog entry and standard advice.
Diagnosis make_diagnosis(DiagnosisKind kind, const char* verdict);
/// A diagnosis of a completed run whose training is wrong.
Diagnosis silent(DiagnosisKind kind);
/// Changes the kind, and with it the catalog entry and advice.
void set_kind(Diagnosis& diagnosis, DiagnosisKind kind);

/// Notes in `diagnosis` that no majority says which side is right, if that is so: the sides are
/// equally large, or ranks without evidence could change the majority.
void note_majority(Diagnosis& diagnosis, const Disagreement& disagreement);
/// Sets the first symptom of ranks that are out of step, and the verdict; `mismatch` may be null.
void add_symptom(Diagnosis& diagnosis, const Digest& digest, const Mismatch* mismatch);

// Ranks do not run the same program (rules_setup.cpp)
std::optional<Diagnosis> find_start_failed(const Digest& digest);      ///< start_failed, K22
std::optional<Diagnosis> find_duplicate_device(const Digest& digest);  ///< duplicate_device, K21
std::optional<Diagnosis> find_different_model(const Digest& digest);   ///< parameter_*, K04
std::optional<Diagnosis> find_group_creation(const Digest& digest);    ///< group_creation, K18
std::optional<Diagnosis> find_unreachable(const Digest& digest);       ///< unreachable, K22
std::optional<Diagnosis> find_not_joined(const Digest& digest);        ///< not_joined, K22

std::optional<Diagnosis> find_uneven_shards(const Digest& digest);  ///< uneven_shards, K01 and K02
std::optional<Diagnosis> find_hidden_error(const Digest& digest);  ///< error, K06 (rules_crash.cpp)

/// K07, K08, K11, K25: a rank's loop took a different turn (rule_turn.cpp)
std::optional<Diagnosis> find_turn(const Digest& digest);
// The first mismatched collective (rules_out_of_step.cpp)
std::optional<Diagnosis> find_out_of_step(const Digest& digest);  ///< K05, K08, K11, K23

// Updates that differ between ranks (rules_parameters.cpp)
std::optional<Diagnosis> find_parameters_differ(const Digest& digest);  ///< K09, K11, K24, K25
std::optional<Diagnosis> find_buffers_differ(const Digest& digest);     ///< buffers_differ, K20

// A rank that failed (rules_misuse.cpp, rules_crash.cpp)
std::optional<Diagnosis> find_misuse(const Digest& digest);     ///< K03, K12, K26
std::optional<Diagnosis> find_rank_died(const Digest& digest);  ///< rank_died, K06
std::optional<Diagnosis> find_error(const Digest& digest);      ///< error, K06

// Ranks that wait (rules_slots.cpp, rules_cycle.cpp, rules_stuck.cpp, rules_slow.cpp,
// rule_network.cpp)
std::optional<Diagnosis> find_out_of_slots(const Digest& digest);  ///< device_slots, K17
std::optional<Diagnosis> find_left_loop(const Digest& digest);     ///< left_loop, K07
/// One rank went into another group than the others, K05.
std::optional<Diagnosis> find_detour(const Digest& digest);
std::optional<Diagnosis> find_cycle(const Digest& digest);         ///< group_cycle, K17
std::optional<Diagnosis> find_slow_section(const Digest& digest);  ///< slow_section, K14
std::optional<Diagnosis> find_stopped(const Digest& digest);       ///< stalled_rank, K16
std::optional<Diagnosis> find_left_behind(const Digest& digest);   ///< stalled_rank, K16
std::optional<Diagnosis> find_stalled(const Digest& digest);       ///< stalled_*, K16 and K19
std::optional<Diagnosis> find_late_rank(const Digest& digest);     ///< late_rank, K14
std::optional<Diagnosis> find_network(const Digest& digest);       ///< network, K16
/// Matches every incomplete run: reports what is known, and that it is not enough.
std::optional<Diagnosis> describe_unknown(const Digest& digest);  ///< unknown

// Completed runs that are wrong or slow (rules_silent.cpp, rules_straggler.cpp)
std::optional<Diagnosis> find_not_a_number(const Digest& digest);    ///< not_a_number
std::optional<Diagnosis> find_wrong_clip(const Digest& digest);      ///< norm_*, unscaled_*, K09
std::optional<Diagnosis> find_wrong_samples(const Digest& digest);   ///< samples_*, K10
std::optional<Diagnosis> find_uneven_batches(const Digest& digest);  ///< uneven_batches, K13
/// different_call_sites, K05 (rules_call_sites.cpp)
std::optional<Diagnosis> find_different_call_sites(const Digest& digest);
std::optional<Diagnosis> find_straggler(const Digest& digest);  ///< straggler, K15
/// Verdict "clean": samples repeated by DistributedSampler's padding.
std::optional<Diagnosis> find_padding(const Digest& digest);  ///< samples_padded, K10

/// Verdict "clean", confidence "open": no problem in the existing evidence, but some is missing.
std::optional<Diagnosis> describe_gaps(const Digest& digest);  ///< nothing_found

}  // namespace gradsync::diagnosis
