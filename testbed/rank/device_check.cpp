#include "gradsync/testbed/rank/device_check.hpp"
#include "gradsync/core/call_site.hpp"

#include <map>
#include <vector>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/core/rank_list.hpp"
#include "gradsync/ddp/control_tensor.hpp"

namespace gradsync {

void check_devices(ProcessGroup& group, Device& device, std::int64_t claimed) {
  Device& control = device.type() == DeviceType::kMeta ? cpu_device() : device;
  const Tensor input = control_tensor<std::int64_t>({claimed}, DType::kInt64, control);
  const Tensor output = Tensor::empty({group.size(), 1}, DType::kInt64, control);
  CollectiveOptions options;
  options.label.phase = Phase::kInit;
  options.label.what = "devices";
  options.label.site = CallSite(__FILE__, __LINE__).text();
  group.allgather(output, input, options)->wait();

  std::map<std::int64_t, std::vector<int>> ranks_by_device;
  int rank = 0;
  for (const std::int64_t of_rank : control_values<std::int64_t>(output)) {
    ranks_by_device[of_rank].push_back(rank++);
  }
  for (const auto& [number, ranks] : ranks_by_device) {
    if (ranks.size() < 2) continue;
    throw Error(ErrorCode::kMisuse,
                fmt::format("rank {}: duplicate device: {} use device {}. Give each rank of a "
                            "machine a device of its own (LOCAL_RANK), before its first collective",
                            group.rank(), rank_list(ranks), number));
  }
}

}  // namespace gradsync
