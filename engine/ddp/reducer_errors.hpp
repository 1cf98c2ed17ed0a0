#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/ddp_options.hpp"
#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// The rank and position of an error.
struct ErrorPlace {
  int rank;
  const LoopPosition& position;
};

/// The misuses rejected by PyTorch's reducer, as Error(kMisuse). Each text starts with the rank and
/// the step, keeps PyTorch's well-known wording, and names the parameters.

/// A new forward while gradients of the last backward are still missing.
Error unfinished_reduction(const ErrorPlace& place, const DdpOptions& options,
                           const std::vector<std::string>& missing);

/// A backward of the program's own autograd ended with gradients missing.
Error gradients_not_marked(const ErrorPlace& place, const std::vector<std::string>& missing);

/// A second gradient of one parameter within one synchronized backward.
Error marked_ready_twice(const ErrorPlace& place, const DdpOptions& options,
                         const std::string& parameter);

/// static_graph: a gradient that did not exist in the first iteration.
Error graph_changed(const ErrorPlace& place, const std::string& parameter);

/// A gradient whose dtype differs from that of its bucket.
Error dtype_changed(const ErrorPlace& place, const std::string& parameter, DType gradient,
                    DType bucket);

/// gradient_as_bucket_view: `grad` was replaced between its hook and the end of backward.
Error not_a_bucket_view(const ErrorPlace& place, const std::string& parameter);

/// A parameter that was used in an iteration without synchronization but has no gradient.
Error used_without_gradient(const ErrorPlace& place, const std::string& parameter);

/// A communication hook returned something other than a reduced bucket.
Error wrong_hook_result(const ErrorPlace& place, std::size_t bucket, const Tensor& expected,
                        const Tensor& result);

Error hook_registered_twice(const ErrorPlace& place);
Error hook_registered_late(const ErrorPlace& place);

}  // namespace gradsync
