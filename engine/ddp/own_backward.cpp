// DistributedDataParallel for programs with their own autograd.

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/ddp_logging.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/ddp/reducer.hpp"
#include "gradsync/ddp/replica.hpp"

namespace gradsync {

Error DistributedDataParallel::misuse(const std::string& text) const {
  return {ErrorCode::kMisuse, fmt::format("rank {}: {}", group_->rank(), text)};
}

std::size_t DistributedDataParallel::reduced_index(std::size_t parameter) const {
  const auto& indices = replica_->trainable_index;
  if (parameter >= indices.size()) {
    throw misuse(
        fmt::format("there is no parameter {}: DDP was given {}", parameter, indices.size()));
  }
  if (!indices[parameter]) {
    throw misuse(
        fmt::format("parameter {} is not reduced: it is not trained, or DDP was told to "
                    "ignore it",
                    parameter));
  }
  return *indices[parameter];
}

void DistributedDataParallel::prepare_for_forward(const CallSite& site) {
  begin_forward(/*trains=*/true, site);
}

void DistributedDataParallel::prepare_for_backward(const std::vector<std::size_t>& unused,
                                                   const CallSite& site) {
  if (!unused.empty() && !options_.find_unused_parameters && !options_.static_graph) {
    throw misuse("prepare_for_backward was given unused parameters; set find_unused_parameters");
  }
  std::vector<std::size_t> reduced;
  for (const std::size_t parameter : unused) reduced.push_back(reduced_index(parameter));
  const bool reduces = end_forward(/*trains=*/true);
  own_backward_.emplace(OwnBackward{BackwardPass(site), reduces});
  if (!reduces) return;
  reducer_->prepare_for_backward(std::move(reduced));
  logger_->check_static(*reducer_);
}

void DistributedDataParallel::mark_gradient_ready(std::size_t parameter) {
  if (!own_backward_) throw misuse("mark_gradient_ready was called before prepare_for_backward");
  reducer_->on_gradient(reduced_index(parameter), own_backward_->pass);
}

void DistributedDataParallel::finalize_backward() {
  if (!own_backward_) throw misuse("finalize_backward was called before prepare_for_backward");
  OwnBackward backward = std::move(*own_backward_);
  own_backward_.reset();
  if (backward.reduces) reducer_->on_last_gradient(backward.pass);
  backward.pass.run_callbacks();
  if (backward.reduces) reducer_->check_finished();
}

}  // namespace gradsync
