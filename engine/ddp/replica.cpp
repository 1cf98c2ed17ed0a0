#include "gradsync/ddp/replica.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gradsync/core/error.hpp"
#include "gradsync/core/name_pattern.hpp"
#include "gradsync/ddp/replica_check.hpp"

namespace gradsync {
namespace {

bool is_ignored(const DdpOptions& options, const std::string& name) {
  return std::ranges::any_of(options.params_and_buffers_to_ignore,
                             [&](const std::string& pattern) { return matches(pattern, name); });
}

void check_ignored_names(const std::vector<ParameterPtr>& parameters,
                         const std::vector<BufferPtr>& buffers, const DdpOptions& options,
                         int rank) {
  for (const std::string& name : options.params_and_buffers_to_ignore) {
    const auto has_name = [&](const auto& owner) { return matches(name, owner); };
    if (std::ranges::any_of(parameters, has_name, [](const auto& p) { return p->name(); }) ||
        std::ranges::any_of(buffers, has_name, [](const auto& b) { return b->name; })) {
      continue;
    }
    throw Error(ErrorCode::kMisuse,
                fmt::format("rank {}: DDP is to ignore {}, but the model has no "
                            "parameter or buffer of this name",
                            rank, name));
  }
}

}  // namespace

Replica::Replica(const std::vector<ParameterPtr>& all_parameters,
                 const std::vector<BufferPtr>& all_buffers, const DdpOptions& options, int rank) {
  check_ignored_names(all_parameters, all_buffers, options, rank);
  for (const ParameterPtr& parameter : all_parameters) {
    std::optional<std::size_t>& index = trainable_index.emplace_back();
    if (is_ignored(options, parameter->name())) continue;
    parameters.push_back(parameter);
    if (!parameter->requires_grad()) continue;
    index = trainable.size();
    trainable.push_back(parameter);
  }
  for (const BufferPtr& buffer : all_buffers) {
    if (!is_ignored(options, buffer->name)) buffers.push_back(buffer);
  }
  if (trainable.empty()) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("rank {}: DistributedDataParallel is not needed when a module doesn't "
                            "have any parameter that requires a gradient",
                            rank));
  }
}

std::vector<std::string> describe_replica(const Replica& replica, const DdpOptions& options) {
  std::vector<std::string> lines;
  for (const ParameterPtr& parameter : replica.parameters) {
    const char* kind = parameter->requires_grad() ? "parameter" : "frozen parameter";
    lines.push_back(describe_tensor(kind, parameter->name(), parameter->data));
  }
  for (const BufferPtr& buffer : replica.buffers) {
    lines.push_back(describe_tensor("buffer", buffer->name, buffer->data));
  }
  const BucketCaps caps = bucket_caps(options);
  lines.push_back(fmt::format("option find_unused_parameters={}", options.find_unused_parameters));
  lines.push_back(fmt::format("option static_graph={}", options.static_graph));
  lines.push_back(fmt::format("option broadcast_buffers={}", options.broadcast_buffers));
  lines.push_back(fmt::format("bucket caps of {} and {} bytes", caps.first, caps.others));
  return lines;
}

}  // namespace gradsync
