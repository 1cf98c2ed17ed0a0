#include "gradsync/ddp/ddp_logging.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>

namespace gradsync {
namespace {

constexpr std::int64_t kFirstIterations = 10;  // all sampled
constexpr std::int64_t kSampleRate = 100;      // later sampling interval, PyTorch's default

std::string bucket_sizes(const Reducer& reducer) {
  std::vector<Bytes> sizes;
  for (const Bucket& bucket : reducer.buckets()) sizes.push_back(bucket.gradients.nbytes());
  return fmt::format("{}", fmt::join(sizes, ", "));
}

std::int64_t nanoseconds(Seconds time) {
  return static_cast<std::int64_t>(std::llround(time.count() * 1e9));
}

/// PyTorch's type names.
std::string type_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
    case DType::kFloat16:
      return "c10::Half";
    case DType::kBFloat16:
      return "c10::BFloat16";
    default:
      return std::string(to_string(dtype));
  }
}

}  // namespace

DdpLogger::DdpLogger(const Reducer& reducer, const ProcessGroup& group, const DdpOptions& options)
    : find_unused_parameters_(options.find_unused_parameters) {
  auto& strs = data_.strs_map;
  auto& ints = data_.ints_map;
  Bytes bytes = 0;
  std::set<std::string> dtypes;
  for (const ParameterPtr& parameter : reducer.parameters()) {
    bytes += parameter->data.nbytes();
    dtypes.insert(type_name(parameter->data.dtype()));
  }
  strs["module_name"] = "Model";
  strs["backend_name"] = group.backend_name();
  strs["bucket_sizes"] = bucket_sizes(reducer);
  strs["dtypes"] = fmt::format("{}", fmt::join(dtypes, ", "));
  ints["world_size"] = group.size();
  ints["rank"] = group.rank();
  ints["iteration"] = 0;
  ints["num_parameter_tensors"] = static_cast<std::int64_t>(reducer.parameters().size());
  ints["total_parameter_size_bytes"] = bytes;
  ints["bucket_cap_bytes"] = bucket_caps(options).others;
  ints["broadcast_buffers"] = options.broadcast_buffers ? 1 : 0;
  ints["find_unused_parameters"] = options.find_unused_parameters ? 1 : 0;
  ints["gradient_as_bucket_view"] = options.gradient_as_bucket_view ? 1 : 0;
  if (options.static_graph) ints["static_graph"] = 1;
}

void DdpLogger::update(const Reducer& reducer) {
  const std::int64_t iteration = iterations_++;
  if (iteration == 0 || (iteration > kFirstIterations && iteration % kSampleRate != 0)) return;
  ++samples_;
  data_.ints_map["iteration"] = iteration;

  // As in PyTorch, the sizes accumulate over iterations until one has no unused parameter.
  if (reducer.unused_parameters().empty() && find_unused_parameters_) {
    data_.ints_map["unused_parameter_size"] = 0;
  }
  for (const std::size_t index : reducer.unused_parameters()) {
    data_.ints_map["unused_parameter_size"] += reducer.parameters()[index]->data.nbytes();
  }
  update_buckets(reducer);
  if (!reducer.ready_order().empty()) {
    data_.strs_map["prev_iteration_grad_ready_order_indices"] =
        fmt::format("{}", fmt::join(reducer.ready_order(), ", "));
  }
  update_times(reducer.times());
}

void DdpLogger::check_static(const Reducer& reducer) {
  if (!find_unused_parameters_ || data_.ints_map.contains("static_graph") || !graph_is_static_) {
    return;
  }
  if (iterations_ > 1 && last_unused_ != reducer.unused_parameters()) {
    graph_is_static_ = false;
    data_.ints_map["can_set_static_graph"] = 0;
    data_.ints_map["iteration"] = iterations_;
  }
  last_unused_ = reducer.unused_parameters();
}

void DdpLogger::set_error(const std::string& text) {
  data_.ints_map["has_error"] = 1;
  data_.strs_map["error"] = text;
  data_.ints_map["iteration"] = iterations_;
}

void DdpLogger::update_buckets(const Reducer& reducer) {
  const std::int64_t rebuilt = reducer.has_rebuilt_buckets() ? 1 : 0;
  std::int64_t& known = data_.ints_map["has_rebuilt_buckets"];
  if (known == rebuilt) return;
  known = rebuilt;
  data_.strs_map["rebuilt_bucket_sizes"] = bucket_sizes(reducer);
  std::vector<std::string> buckets;
  for (const Bucket& bucket : reducer.buckets()) {
    std::vector<std::size_t> indices;
    for (const BucketSlot& slot : bucket.slots) indices.push_back(slot.parameter);
    buckets.push_back(fmt::format("{}", fmt::join(indices, " ")));
  }
  data_.strs_map["rebuilt_per_bucket_param_indices"] = fmt::format("{}", fmt::join(buckets, ", "));
}

void DdpLogger::update_times(const IterationTimes& t) {
  record_interval("forward_compute_time", t.forward_start, t.backward_compute_start);
  record_interval("backward_compute_time", t.backward_compute_start, t.backward_compute_end);
  record_interval("backward_comm_time", t.backward_comm_start, t.backward_comm_end);
  record_interval("backward_compute_comm_overlap_time", t.backward_comm_start,
                  t.backward_compute_end);
  auto& ints = data_.ints_map;
  ints["forward_compute_time_start"] = nanoseconds(t.forward_start);
  ints["backward_compute_time_start"] = nanoseconds(t.backward_compute_start);
  ints["backward_compute_time_end"] = nanoseconds(t.backward_compute_end);
  ints["backward_comm_time_start"] = nanoseconds(t.backward_comm_start);
  ints["backward_comm_time_end"] = nanoseconds(t.backward_comm_end);
}

/// Records the latest duration and its running mean. Does nothing if the iteration did not reach
/// the interval.
void DdpLogger::record_interval(const std::string& name, Seconds begin, Seconds end) {
  std::int64_t& last = data_.ints_map[name];
  std::int64_t& mean = data_.ints_map["avg_" + name];
  last = 0;
  if (begin.count() < 0 || end < begin) return;
  last = nanoseconds(end) - nanoseconds(begin);
  mean = (last + mean * (samples_ - 1)) / samples_;
}

}  // namespace gradsync
