#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gradsync/ddp/ddp_options.hpp"
#include "gradsync/ddp/reducer.hpp"

namespace gradsync {

/// DDP's logging data, with the names of PyTorch's DDPLoggingData. Times are in nanoseconds.
struct DdpLoggingData {
  std::map<std::string, std::string> strs_map;
  std::map<std::string, std::int64_t> ints_map;
};

/// Maintains DdpLoggingData as PyTorch's logger does. Runtime fields are sampled at the start of a
/// synchronized forward (iterations 1 to 10, then every 100th), so they describe the previous
/// iteration; iteration 0 has none.
class DdpLogger {
 public:
  DdpLogger(const Reducer& reducer, const ProcessGroup& group, const DdpOptions& options);

  /// Call at the start of a synchronized forward, before the reducer's prepare_for_forward.
  void update(const Reducer& reducer);
  /// Call after a synchronized forward. With find_unused_parameters, records the first iteration
  /// whose unused parameters differ from the previous one: the graph is not static.
  void check_static(const Reducer& reducer);
  /// Records a misuse and its iteration.
  void set_error(const std::string& text);
  void set_comm_hook(const std::string& name) { data_.strs_map["comm_hook"] = name; }
  void set_join_uneven_inputs() { data_.ints_map["join_uneven_inputs"] = 1; }

  const DdpLoggingData& data() const noexcept { return data_; }

 private:
  void update_buckets(const Reducer& reducer);
  void update_times(const IterationTimes& times);
  void record_interval(const std::string& name, Seconds begin, Seconds end);

  DdpLoggingData data_;
  std::int64_t iterations_ = 0;  // synchronized forwards so far
  std::int64_t samples_ = 0;     // number of times `update` sampled
  bool find_unused_parameters_;
  bool graph_is_static_ = true;  // as far as known
  std::vector<std::size_t> last_unused_;
};

}  // namespace gradsync
