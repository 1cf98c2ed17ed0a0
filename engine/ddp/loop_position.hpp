#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/core/call_site.hpp"

namespace gradsync {

/// The position of one rank in the training loop, and the collective labels derived from it.
struct LoopPosition {
  std::int64_t epoch = -1;
  std::int64_t step = -1;
  std::int64_t micro_step = 0;
  CallSite site = CallSite::none();  ///< of the DDP call that communicates

  /// Metadata for a collective issued at this position. `parameters` are the names in the bucket.
  CollectiveOptions options(Phase phase, std::string what, std::int32_t bucket = -1,
                            std::shared_ptr<const std::vector<std::string>> parameters = {}) const {
    CollectiveOptions result;
    result.label.epoch = epoch;
    result.label.step = step;
    result.label.micro_step = micro_step;
    result.label.phase = phase;
    result.label.bucket = bucket;
    result.label.what = std::move(what);
    result.label.site = site.text();
    result.parameters = std::move(parameters);
    return result;
  }
};

}  // namespace gradsync
