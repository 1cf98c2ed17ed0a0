#pragma once

#include <span>

namespace gradsync {

/// The kinds of problem that the diagnosis can find. Each has a row in kinds.cpp: the name used in
/// results and scenarios (`expect.diagnosis.kind`), the catalog entry, the line of docs/hangs.md,
/// and the standard advice.
enum class DiagnosisKind {
  // The job did not start.
  kStartFailed,
  kNotJoined,
  kUnreachable,
  kDuplicateDevice,
  kGroupCreation,
  kParameterCount,
  kParameterOrder,
  kParameterShape,
  kParameterName,
  // A rank's loop took a different turn.
  kUnevenShards,
  kResumeDiffers,
  kLeftLoop,
  kSkippedStep,
  kSwallowedException,
  kNoSyncDiffers,
  kOutOfStep,
  // The ranks do not issue the same collectives.
  kExtraCollective,
  kMissingCollective,
  kDifferentCollectives,
  kDifferentCallSites,
  kPayloadDiffers,
  kMismatch,
  // A rank failed.
  kError,
  kRankDied,
  kUnusedParameters,
  kLossNotAttached,
  kReadyTwice,
  kStaticGraphChanged,
  // Ranks wait.
  kGroupCycle,
  kDeviceSlots,
  kSlowSection,
  kLateRank,
  kStalledLoader,
  kStalledCompute,
  kStalledRank,
  kNetwork,
  // Nothing stopped, but the training is wrong.
  kLossScaleDiffers,
  kClipDiffers,
  kLearningRateDiffers,
  kReductionStopped,
  kLastBatchLocal,
  kParameterOutsideDdp,
  kParametersDiffer,
  kBuffersDiffer,
  kNotANumber,
  kNormReducedTwice,
  kUnscaledTwice,
  kClippedBeforeUnscale,
  kSamplesOverlap,
  kSamplesNotSharded,
  kSameOrderEveryEpoch,
  kUnevenBatches,
  // Only slow, or worth a note.
  kStraggler,
  kSamplesPadded,
  // The evidence is insufficient.
  kNothingFound,
  kUnknown,
};

struct KindRow {
  DiagnosisKind kind;
  const char* name;     ///< "uneven_shards"
  const char* catalog;  ///< its entry in docs/hangs.md, "K01"; empty if none
  const char* meaning;  ///< one sentence, as in docs/hangs.md
  const char* fix;      ///< what to do, unless a rule knows better
};

/// All rows, in the order of the enumeration.
std::span<const KindRow> all_kinds() noexcept;
const KindRow& row_of(DiagnosisKind kind) noexcept;
inline const char* to_string(DiagnosisKind kind) noexcept {
  return row_of(kind).name;
}

}  // namespace gradsync
