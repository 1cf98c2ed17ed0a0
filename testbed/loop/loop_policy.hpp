#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// The decisions of a loop from step to step. One of the loop's parts: a subclass may decide
/// differently on one rank.
class LoopPolicy {
 public:
  virtual ~LoopPolicy() = default;

  /// Whether DDP reduces the gradients of this batch (i.e. backward is outside no_sync).
  /// `by_default` follows the job's options: true for the last batch of a step, or for every batch.
  virtual bool reduces(const LoopPosition&, bool by_default) const { return by_default; }
  /// The reason why the rank leaves its loop before `step`; nullopt to continue.
  virtual std::optional<std::string> leaves(std::int64_t /*step*/) const { return std::nullopt; }
};

}  // namespace gradsync
