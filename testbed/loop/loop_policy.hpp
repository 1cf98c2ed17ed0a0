#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// What a loop decides from step to step. One of the loop's parts: a subclass may decide otherwise
/// on one rank.
class LoopPolicy {
 public:
  virtual ~LoopPolicy() = default;

  /// Whether DDP reduces the gradients of this batch (outside no_sync). `by_default`: as the job's
  /// options have it, with the last batch of a step or with each.
  virtual bool reduces(const LoopPosition&, bool by_default) const { return by_default; }
  /// Why the rank leaves its loop before `step`; nullopt: it does not.
  virtual std::optional<std::string> leaves(std::int64_t /*step*/) const { return std::nullopt; }
};

}  // namespace gradsync
