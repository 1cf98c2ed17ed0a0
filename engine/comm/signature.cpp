#include "gradsync/comm/signature.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gradsync {
namespace {

constexpr const char* kOf = " of ";  // precedes the data in a signature

}  // namespace

std::string signature(const CollectiveRecord& record) {
  std::string text = to_string(record.op);
  if (reduces(record.op)) text += fmt::format(" ({})", to_string(record.reduce_op));
  if (has_root(record.op)) text += fmt::format(" (root {})", record.root);
  if (record.op == OpType::kSend) text += fmt::format(" to rank {}", record.root);
  if (record.op == OpType::kRecv) text += fmt::format(" from rank {}", record.root);
  text += record.op == OpType::kAlltoall ? kOf : fmt::format("{}{} ", kOf, record.elements);
  text += fmt::format("{} elements", to_string(record.dtype));
  if (!record.label_must_match) return text;
  const CollectiveLabel& label = record.label;
  if (label.step >= 0) text += fmt::format(", step {} (epoch {})", label.step, label.epoch);
  if (label.micro_step > 0) text += fmt::format(", micro step {}", label.micro_step);
  if (label.bucket >= 0) text += fmt::format(", bucket {}", label.bucket);
  if (!label.what.empty()) text += fmt::format(" ({})", label.what);
  return text;
}

bool signatures_match(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto is_pair = [](const std::string& from, const std::string& to) {
    return from.starts_with("send to ") && to.starts_with("recv from ");
  };
  if (!is_pair(a, b) && !is_pair(b, a)) return false;
  return a.substr(a.find(kOf)) == b.substr(b.find(kOf));
}

bool same_signature(const CollectiveRecord& a, const CollectiveRecord& b) {
  // Each group ignores the fields that signature() omits for the operation.
  const bool same_op = a.op == b.op || (is_point_to_point(a.op) && is_point_to_point(b.op));
  const bool same_data =
      same_op && a.dtype == b.dtype && (a.op == OpType::kAlltoall || a.elements == b.elements) &&
      (!reduces(a.op) || a.reduce_op == b.reduce_op) && (!has_root(a.op) || a.root == b.root);
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

std::string describe_split_mismatch(const CollectiveRecord& record, int sender, std::int64_t sent,
                                    int receiver, std::int64_t expected) {
  const std::string own = signature(record);
  return describe_mismatch(record.sequence, sender,
                           fmt::format("{} with {} for rank {}", own, sent, receiver), receiver,
                           fmt::format("{} with {} from rank {}", own, expected, sender));
}

}  // namespace gradsync
