#include "engine/comm/signature.hpp"

#include <fmt/format.h>

namespace gradsync {

std::string signature(const CollectiveRecord& record) {
  std::string text = to_string(record.op);
  if (record.op == OpType::kAllreduce) text += fmt::format(" ({})", to_string(record.reduce_op));
  if (record.op == OpType::kBroadcast) text += fmt::format(" (root {})", record.root);
  text += fmt::format(" of {} {} elements", record.elements, to_string(record.dtype));
  const CollectiveLabel& label = record.label;
  if (label.step >= 0) text += fmt::format(", step {} (epoch {})", label.step, label.epoch);
  if (label.micro_step > 0) text += fmt::format(", micro step {}", label.micro_step);
  if (label.bucket >= 0) text += fmt::format(", bucket {}", label.bucket);
  if (!label.what.empty()) text += fmt::format(" ({})", label.what);
  return text;
}

std::string describe_mismatch(std::int64_t sequence, int rank_a, const std::string& signature_a,
                              int rank_b, const std::string& signature_b) {
  return fmt::format(
      "collective #{} is not the same on all ranks: rank {} issued {}; rank {} issued {}. All "
      "ranks "
      "must issue the same collectives in the same order",
      sequence, rank_a, signature_a, rank_b, signature_b);
}

}  // namespace gradsync
