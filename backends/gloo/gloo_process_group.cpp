#include "gradsync/backends/gloo/gloo_process_group.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gradsync/backends/gloo/gloo_collectives.hpp"
#include "gradsync/backends/gloo/gloo_messages.hpp"
#include "gradsync/backends/gloo/gloo_process_group_impl.hpp"

namespace gradsync {
namespace {

const GlooProcessGroup::Options& checked(const GlooProcessGroup::Options& options) {
  if (options.timeout <= Seconds(0)) {
    throw Error(ErrorCode::kUsage, "gloo: the timeout must be positive");
  }
  if (options.threads < 1 || options.threads > 8) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("gloo: {} communication threads; 1 to 8 are possible", options.threads));
  }
  return options;
}

}  // namespace

GlooProcessGroup::GlooProcessGroup(const RankEnvironment& environment, const JobStore& job,
                                   Clock& clock, const Options& options)
    : ProcessGroup(environment.rank, environment.world_size, options.name, clock,
                   std::make_shared<FlightRecorder>(options.flight_recorder_size)),
      impl_(std::make_unique<Impl>(*this, environment, job.store, checked(options),
                                   std::vector<int>{})) {}

GlooProcessGroup::GlooProcessGroup(const RankEnvironment& environment,
                                   const std::shared_ptr<Store>& store, Clock& clock,
                                   const Options& options, const std::vector<int>& members,
                                   std::shared_ptr<FlightRecorder> recorder)
    : ProcessGroup(environment.rank, environment.world_size, options.name, clock,
                   std::move(recorder)),
      impl_(std::make_unique<Impl>(*this, environment, store, options, members)) {}

GlooProcessGroup::~GlooProcessGroup() = default;

void GlooProcessGroup::shutdown() {
  impl_->shutdown();
}

void GlooProcessGroup::stall() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->first_failure.has_value(); });
  const Failure& failure = *impl_->first_failure;
  throw Error(failure.code == ErrorCode::kRankDied ? failure.code : ErrorCode::kPeerFailed,
              fmt::format("rank {} had not come back when the job ended: {}", impl_->self(),
                          failure.describe()));
}

std::shared_ptr<ProcessGroup> GlooProcessGroup::do_split(const std::string& name,
                                                         const std::vector<int>& members) {
  RankEnvironment environment = impl_->env;
  const auto self = std::find(members.begin(), members.end(), rank());
  environment.rank = static_cast<int>(self - members.begin());
  environment.world_size = static_cast<int>(members.size());
  Options options = impl_->options;
  options.name = name;
  return std::shared_ptr<ProcessGroup>(new GlooProcessGroup(
      environment, impl_->store, clock(), options, members, shared_flight_recorder()));
}

void GlooProcessGroup::abort(ErrorCode code, const std::string& cause) {
  impl_->fail({rank(), code, cause, {}});
}

void GlooProcessGroup::refuse_average(OpType op, ReduceOp reduce_op) const {
  if (reduce_op != ReduceOp::kAverage) return;
  throw Error(ErrorCode::kUsage, fmt::format("rank {}: Gloo has no average for {}; divide before "
                                             "the sum",
                                             rank(), to_string(op)));
}

WorkPtr GlooProcessGroup::do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) {
  refuse_average(record.op, op);
  return impl_->issue(record, [tensor = std::move(tensor), op](const auto& context, auto tag) {
    gloo_allreduce(context, tag, tensor, op);
  });
}

WorkPtr GlooProcessGroup::do_broadcast(Tensor tensor, int root, const CollectiveRecord& record) {
  return impl_->issue(record, [tensor = std::move(tensor), root](const auto& context, auto tag) {
    gloo_broadcast(context, tag, tensor, root);
  });
}

WorkPtr GlooProcessGroup::do_allgather(Tensor output, Tensor input,
                                       const CollectiveRecord& record) {
  return impl_->issue(
      record, [output = std::move(output), input = std::move(input)](
                  const auto& context, auto tag) { gloo_allgather(context, tag, output, input); });
}

WorkPtr GlooProcessGroup::do_reduce(Tensor tensor, int root, ReduceOp op,
                                    const CollectiveRecord& record) {
  refuse_average(record.op, op);
  return impl_->issue(record,
                      [tensor = std::move(tensor), root, op](const auto& context, auto tag) {
                        gloo_reduce(context, tag, tensor, root, op);
                      });
}

WorkPtr GlooProcessGroup::do_reduce_scatter(Tensor output, Tensor input, ReduceOp op,
                                            const CollectiveRecord& record) {
  refuse_average(record.op, op);
  return impl_->issue(record, [output = std::move(output), input = std::move(input), op](
                                  const auto& context, auto tag) {
    gloo_reduce_scatter(context, tag, output, input, op);
  });
}

WorkPtr GlooProcessGroup::do_alltoall(Tensor output, Tensor input, const CollectiveRecord& record) {
  return impl_->issue(record, [output = std::move(output), input = std::move(input),
                               splits = record.splits](const auto& context, auto tag) {
    gloo_alltoall(context, tag, output, input, *splits);
  });
}

WorkPtr GlooProcessGroup::do_send(Tensor tensor, int dst, const CollectiveRecord& record) {
  return impl_->issue(
      record, [tensor = std::move(tensor), dst, sequence = record.sequence](
                  const auto& context, auto) { gloo_send(context, sequence, tensor, dst); });
}

WorkPtr GlooProcessGroup::do_recv(Tensor tensor, int src, const CollectiveRecord& record) {
  return impl_->issue(
      record, [tensor = std::move(tensor), src, sequence = record.sequence](
                  const auto& context, auto) { gloo_recv(context, sequence, tensor, src); });
}

WorkPtr GlooProcessGroup::do_barrier(const CollectiveRecord& record) {
  return impl_->issue(record, [](const auto& context, auto tag) { gloo_barrier(context, tag); });
}

}  // namespace gradsync
