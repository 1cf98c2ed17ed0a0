#pragma once

#include <optional>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"

namespace gradsync::diagnosis {

/// A rule knows one family of failures: it gives a diagnosis without the table if the digest shows
/// that failure, else nothing. `diagnose` asks the rules in the order below and takes the first
/// answer, so a rule may rely on those before it having found nothing. None looks at the scenario's
/// faults: all judge by what ranks recorded.
using Rule = std::optional<Diagnosis> (*)(const Digest& digest);

/// A diagnosis of that kind, with the kind's catalog entry and standing advice.
Diagnosis make_diagnosis(DiagnosisKind kind, const char* verdict);
/// One of a run that completed: nothing stopped, and the training is wrong.
Diagnosis silent(DiagnosisKind kind);
/// Changes the kind, and with it catalog entry and advice.
void set_kind(Diagnosis& diagnosis, DiagnosisKind kind);

/// Says in `diagnosis` that no majority tells which side is right, where that is so: the sides are
/// equally large, or ranks whose evidence is missing could turn it.
void note_majority(Diagnosis& diagnosis, const Disagreement& disagreement);
/// What is seen first of ranks that are out of step, and with which verdict: `mismatch` may be
/// null.
void add_symptom(Diagnosis& diagnosis, const Digest& digest, const Mismatch* mismatch);

// Ranks that are not the same program (rules_setup.cpp)
std::optional<Diagnosis> find_start_failed(const Digest& digest);      ///< start_failed, K22
std::optional<Diagnosis> find_duplicate_device(const Digest& digest);  ///< duplicate_device, K21
std::optional<Diagnosis> find_different_model(const Digest& digest);   ///< parameter_*, K04
std::optional<Diagnosis> find_group_creation(const Digest& digest);    ///< group_creation, K18
std::optional<Diagnosis> find_unreachable(const Digest& digest);       ///< unreachable, K22
std::optional<Diagnosis> find_not_joined(const Digest& digest);        ///< not_joined, K22

std::optional<Diagnosis> find_uneven_shards(const Digest& digest);  ///< uneven_shards, K01 and K02
std::optional<Diagnosis> find_hidden_error(const Digest& digest);  ///< error, K06 (rules_crash.cpp)

/// K07, K08, K11, K25: a rank's loop took another way (rule_turn.cpp)
std::optional<Diagnosis> find_turn(const Digest& digest);
// The first collective that did not meet its like (rules_out_of_step.cpp)
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
/// A rank that went into one group while the others went into another, K05.
std::optional<Diagnosis> find_detour(const Digest& digest);
std::optional<Diagnosis> find_cycle(const Digest& digest);         ///< group_cycle, K17
std::optional<Diagnosis> find_slow_section(const Digest& digest);  ///< slow_section, K14
std::optional<Diagnosis> find_stopped(const Digest& digest);       ///< stalled_rank, K16
std::optional<Diagnosis> find_left_behind(const Digest& digest);   ///< stalled_rank, K16
std::optional<Diagnosis> find_stalled(const Digest& digest);       ///< stalled_*, K16 and K19
std::optional<Diagnosis> find_late_rank(const Digest& digest);     ///< late_rank, K14
std::optional<Diagnosis> find_network(const Digest& digest);       ///< network, K16
/// Has an answer for every run that did not complete: what is known, and that it is not enough.
std::optional<Diagnosis> describe_unknown(const Digest& digest);  ///< unknown

// Runs that completed, and are wrong or slow (rules_silent.cpp, rules_straggler.cpp)
std::optional<Diagnosis> find_not_a_number(const Digest& digest);    ///< not_a_number
std::optional<Diagnosis> find_wrong_clip(const Digest& digest);      ///< norm_*, unscaled_*, K09
std::optional<Diagnosis> find_wrong_samples(const Digest& digest);   ///< samples_*, K10
std::optional<Diagnosis> find_uneven_batches(const Digest& digest);  ///< uneven_batches, K13
/// different_call_sites, K05 (rules_call_sites.cpp)
std::optional<Diagnosis> find_different_call_sites(const Digest& digest);
std::optional<Diagnosis> find_straggler(const Digest& digest);  ///< straggler, K15
/// Has the verdict "clean": samples that DistributedSampler repeats by design.
std::optional<Diagnosis> find_padding(const Digest& digest);  ///< samples_padded, K10

/// Has the verdict "clean", confidence "open": nothing is wrong with what there is, and evidence is
/// missing.
std::optional<Diagnosis> describe_gaps(const Digest& digest);  ///< nothing_found

}  // namespace gradsync::diagnosis
