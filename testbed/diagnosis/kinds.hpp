#pragma once

#include <span>

namespace gradsync {

/// What a job can suffer from, as far as the diagnosis can tell. One row each in kinds.cpp: the
/// name that results and scenarios (`expect.diagnosis.kind`) spell, the entry of the catalog, the
/// line of docs/hangs.md, and what to do.
enum class DiagnosisKind {
  // The job did not get going.
  kStartFailed,
  kNotJoined,
  kUnreachable,
  kDuplicateDevice,
  kGroupCreation,
  kParameterCount,
  kParameterOrder,
  kParameterShape,
  kParameterName,
  // A rank took another turn in its loop.
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
  // Nothing stopped, and the training is wrong.
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
  // Nothing is wrong but the time, or worth more than a line.
  kStraggler,
  kSamplesPadded,
  // The evidence does not say.
  kNothingFound,
  kUnknown,
};

struct KindRow {
  DiagnosisKind kind;
  const char* name;     ///< "uneven_shards"
  const char* catalog;  ///< its entry in docs/hangs.md, "K01"; empty where it has none
  const char* meaning;  ///< one sentence, as in docs/hangs.md
  const char* fix;      ///< what to do where a rule knows nothing more precise
};

/// All rows, in the order of the enumeration.
std::span<const KindRow> all_kinds() noexcept;
const KindRow& row_of(DiagnosisKind kind) noexcept;
inline const char* to_string(DiagnosisKind kind) noexcept {
  return row_of(kind).name;
}

}  // namespace gradsync
