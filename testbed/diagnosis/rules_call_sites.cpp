#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {

/// Equal operations issued at different places of the program: either two branches that do the
/// same, or two different quantities that are averaged with each other.
std::optional<Diagnosis> find_different_call_sites(const Digest& digest) {
  if (!digest.all_finished()) return std::nullopt;
  const auto difference = first_site_difference(digest);
  if (!difference) return std::nullopt;
  const CollectiveRecord& record = *difference->record;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kDifferentCallSites, "silent divergence");
  diagnosis.confidence = "likely";  // two branches may well mean the same
  diagnosis.ranks = difference->odd_ranks();
  if (record.label.step >= 0) diagnosis.step = record.label.step;
  diagnosis.collective = describe_collective(record);
  diagnosis.because = fmt::format("{} was issued at different places of the program: {}",
                                  describe_collective(record), difference->describe("at", "at"));
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom = "nothing stops: operation, size and label are equal";
  note_majority(diagnosis, *difference);
  return diagnosis;
}

}  // namespace gradsync::diagnosis
