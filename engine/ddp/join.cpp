#include "gradsync/ddp/join.hpp"

namespace gradsync {
namespace {

constexpr std::int64_t kManyIterations = 1000;  // PyTorch warns from here on

}  // namespace

Join::Join(DistributedDataParallel& ddp, const JoinOptions& options)
    : ddp_(ddp), options_(options) {
  if (options_.enable) ddp_.enter_join(options_);
}

Join::~Join() {
  ddp_.leave_join();
}

void Join::finish() {
  if (!options_.enable) return;
  std::int64_t iterations = 0;
  while (ddp_.shadow_iteration()) ++iterations;
  ddp_.broadcast_final_state(/*trained_last=*/iterations == 0);
  if (iterations > kManyIterations) {
    ddp_.warn(
        "join: this rank shadowed the others for more than 1000 iterations; shards this uneven "
        "waste its time");
  }
  ddp_.leave_join();
}

}  // namespace gradsync
