#include "gradsync/ddp/reducer_errors.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gradsync {
namespace {

Error misuse(const ErrorPlace& place, const std::string& message) {
  std::string where = fmt::format("rank {}", place.rank);
  if (place.position.step >= 0) {
    where += fmt::format(", step {} (epoch {})", place.position.step, place.position.epoch);
  }
  return {ErrorCode::kMisuse, where + ": " + message};
}

std::string list_names(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace

Error unfinished_reduction(const ErrorPlace& place, const DdpOptions& options,
                           const std::vector<std::string>& missing) {
  std::string hint;
  if (options.static_graph) {
    hint = "With static_graph every iteration must use the parameters that the first one used";
  } else if (options.find_unused_parameters) {
    hint =
        "find_unused_parameters is on, so these parameters can be reached from the outputs of "
        "forward: make sure that all outputs take part in the loss";
  } else {
    hint =
        "If they do not take part in the loss of every iteration, set find_unused_parameters; and "
        "make sure that all outputs of forward take part in the loss";
  }
  return misuse(
      place,
      fmt::format("expected to have finished reduction in the prior iteration before "
                  "starting a new one: no gradient arrived for {} parameter{}: {}. {}.",
                  missing.size(), missing.size() == 1 ? "" : "s", list_names(missing), hint));
}

Error gradients_not_marked(const ErrorPlace& place, const std::vector<std::string>& missing) {
  return misuse(place,
                fmt::format("finalize_backward was called before the gradients of {} parameter{} "
                            "were marked ready: {}. Mark each parameter in every backward. Where a "
                            "backward does not reach some, set find_unused_parameters and name "
                            "them in prepare_for_backward.",
                            missing.size(), missing.size() == 1 ? "" : "s", list_names(missing)));
}

Error marked_ready_twice(const ErrorPlace& place, const DdpOptions& options,
                         const std::string& parameter) {
  std::string reasons =
      "Either one backward pass reaches it several times (reentrant checkpoints that share a "
      "parameter), or a parameter is used outside of forward. If the graph is the same in every "
      "iteration, static_graph allows it";
  if (options.find_unused_parameters) {
    reasons +=
        ". Or it was found unused by find_unused_parameters and got a gradient all the same, as "
        "happens inside reentrant checkpoints";
  }
  return misuse(place, fmt::format("expected to mark a variable ready only once, but parameter {} "
                                   "got a second gradient in one synchronised backward. {}.",
                                   parameter, reasons));
}

Error graph_changed(const ErrorPlace& place, const std::string& parameter) {
  return misuse(place,
                fmt::format("your training graph has changed in this iteration: parameter {} got a "
                            "gradient that it did not get in the first iteration. static_graph "
                            "needs the same graph in every iteration.",
                            parameter));
}

Error dtype_changed(const ErrorPlace& place, const std::string& parameter, DType gradient,
                    DType bucket) {
  return misuse(place, fmt::format("parameter {}: expected a gradient of type {}, that of its "
                                   "bucket, got {}.",
                                   parameter, to_string(bucket), to_string(gradient)));
}

Error not_a_bucket_view(const ErrorPlace& place, const std::string& parameter) {
  return misuse(place,
                fmt::format("parameter {}: its gradient is not the view into its bucket that it "
                            "was. With gradient_as_bucket_view a gradient must not be replaced "
                            "during backward; change it in place.",
                            parameter));
}

Error used_without_gradient(const ErrorPlace& place, const std::string& parameter) {
  return misuse(place,
                fmt::format("parameter {} was used since the last synchronisation but has no "
                            "gradient now. Do not clear gradients between no_sync and the backward "
                            "that synchronises.",
                            parameter));
}

Error wrong_hook_result(const ErrorPlace& place, std::size_t bucket, const Tensor& expected,
                        const Tensor& result) {
  return misuse(place,
                fmt::format("bucket {}: the communication hook must return one tensor of {} {} "
                            "elements, got {}.",
                            bucket, expected.numel(), to_string(expected.dtype()),
                            result.defined()
                                ? fmt::format("{} of {}", result.numel(), to_string(result.dtype()))
                                : "an undefined tensor"));
}

Error hook_registered_twice(const ErrorPlace& place) {
  return misuse(place, "register_comm_hook can only be called once.");
}

Error hook_registered_late(const ErrorPlace& place) {
  return misuse(place, "register_comm_hook must be called before the first backward pass.");
}

}  // namespace gradsync
