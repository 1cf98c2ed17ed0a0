#include "gradsync/comm/signature.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gradsync {

std::string signature(const CollectiveRecord& record) {
  std::string text = to_string(record.op);
  if (record.op == OpType::kAllreduce) text += fmt::format(" ({})", to_string(record.reduce_op));
  if (record.op == OpType::kBroadcast) text += fmt::format(" (root {})", record.root);
  text += fmt::format(" of {} {} elements", record.elements, to_string(record.dtype));
  if (!record.label_must_match) return text;
  const CollectiveLabel& label = record.label;
  if (label.step >= 0) text += fmt::format(", step {} (epoch {})", label.step, label.epoch);
  if (label.micro_step > 0) text += fmt::format(", micro step {}", label.micro_step);
  if (label.bucket >= 0) text += fmt::format(", bucket {}", label.bucket);
  if (!label.what.empty()) text += fmt::format(" ({})", label.what);
  return text;
}

bool same_signature(const CollectiveRecord& a, const CollectiveRecord& b) {
  // Each group ignores the fields that signature() omits for the operation.
  const bool same_data = a.op == b.op && a.elements == b.elements && a.dtype == b.dtype &&
                         (a.op != OpType::kAllreduce || a.reduce_op == b.reduce_op) &&
                         (a.op != OpType::kBroadcast || a.root == b.root);
  if (!a.label_must_match || !b.label_must_match) return same_data;
  const CollectiveLabel& x = a.label;
  const CollectiveLabel& y = b.label;
  const bool same_step = x.step < 0 ? y.step < 0 : x.step == y.step && x.epoch == y.epoch;
  const bool same_micro_step =
      x.micro_step == y.micro_step || std::max(x.micro_step, y.micro_step) <= 0;
  const bool same_bucket = x.bucket == y.bucket || std::max(x.bucket, y.bucket) < 0;
  return same_data && same_step && same_micro_step && same_bucket && x.what == y.what;
}

std::string describe_mismatch(std::int64_t sequence, int rank_a, const std::string& signature_a,
                              int rank_b, const std::string& signature_b) {
  return fmt::format(
      "collective #{} is not the same on all ranks: rank {} issued {}; rank {} issued {}. All "
      "ranks must issue the same collectives in the same order",
      sequence, rank_a, signature_a, rank_b, signature_b);
}

}  // namespace gradsync
