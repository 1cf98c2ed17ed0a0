#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gradsync/ddp/ddp_options.hpp"
#include "gradsync/ddp/reducer.hpp"

namespace gradsync {

/// PyTorch's DDPLoggingData: what DDP knows of itself, by PyTorch's names. Times are nanoseconds.
struct DdpLoggingData {
  std::map<std::string, std::string> strs_map;
  std::map<std::string, std::int64_t> ints_map;
};

/// Keeps DdpLoggingData as PyTorch's logger does. Fields of the run are taken at the start of a
/// synchronised forward (iterations 1 to 10, then every 100th), so they speak of the iteration
/// before; iteration 0 has none.
class DdpLogger {
 public:
  DdpLogger(const Reducer& reducer, const ProcessGroup& group, const DdpOptions& options);

  /// At the start of a synchronised forward, before the reducer is told of it.
  void update(const Reducer& reducer);
  /// After a synchronised forward. With find_unused_parameters the first iteration whose unused
  /// parameters are not those of the one before is noted: the graph is not static.
  void check_static(const Reducer& reducer);
  /// A misuse, and in which iteration it came.
  void set_error(const std::string& text);
  void set_comm_hook(const std::string& name) { data_.strs_map["comm_hook"] = name; }
  void set_join_uneven_inputs() { data_.ints_map["join_uneven_inputs"] = 1; }

  const DdpLoggingData& data() const noexcept { return data_; }

 private:
  void update_buckets(const Reducer& reducer);
  void update_times(const IterationTimes& times);
  void record_interval(const std::string& name, Seconds begin, Seconds end);

  DdpLoggingData data_;
  std::int64_t iterations_ = 0;  // synchronised forwards so far
  std::int64_t samples_ = 0;     // how often `update` took values
  bool find_unused_parameters_;
  bool graph_is_static_ = true;  // as far as is known
  std::vector<std::size_t> last_unused_;
};

}  // namespace gradsync
