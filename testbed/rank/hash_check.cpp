#include "gradsync/testbed/rank/hash_check.hpp"
#include "gradsync/core/call_site.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/core/rank_list.hpp"

namespace gradsync {

void HashCheck::after_optimizer(const LoopPosition& at) {
  const std::optional<Hash128>& hash = recorder_->last_hash();
  if (!hash || !train_->check_hashes || !hash_is_due(*train_, at.step)) return;
  check_equal_hashes(*group_, *device_, *hash, at.epoch, at.step);
  keeper_->update([&](RankReport& report) { report.steps.back().end = clock_->now(); });
}

std::string describe_difference(std::span<const std::string> hashes) {
  std::map<std::string, std::vector<int>> ranks_by_hash;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    ranks_by_hash[hashes[rank]].push_back(static_cast<int>(rank));
  }
  if (ranks_by_hash.size() < 2) return {};
  std::vector<std::pair<std::string, std::vector<int>>> groups(ranks_by_hash.begin(),
                                                               ranks_by_hash.end());
  // Sort by size, then by first rank; the order of the hashes themselves is arbitrary.
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::pair(b.second.size(), a.second.front()) <
           std::pair(a.second.size(), b.second.front());
  });
  std::string text;
  for (const auto& [hash, ranks] : groups) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {} {}", rank_list(ranks), ranks.size() == 1 ? "has" : "have", hash);
  }
  return text;
}

void check_equal_hashes(ProcessGroup& group, Device& device, const Hash128& hash,
                        std::int64_t epoch, std::int64_t step) {
  constexpr std::int64_t kWords = 2;
  const auto world = static_cast<std::size_t>(group.size());
  Tensor mine = Tensor::empty({kWords}, DType::kInt64, device);
  device.copy_from_host(mine, std::as_bytes(std::span(hash.bytes)));
  Tensor all = Tensor::empty({group.size(), kWords}, DType::kInt64, device);
  CollectiveOptions options;
  options.label.epoch = epoch;
  options.label.step = step;
  options.label.phase = Phase::kCheck;
  options.label.what = "parameter hash";
  options.label.site = CallSite(__FILE__, __LINE__).text();
  group.allgather(all, mine, options)->wait();

  std::vector<Hash128> hashes(world);
  std::vector<std::byte> host(world * sizeof(Hash128));
  device.copy_to_host(host, all);
  std::memcpy(hashes.data(), host.data(), host.size());
  if (std::all_of(hashes.begin(), hashes.end(), [&](const Hash128& h) { return h == hash; })) {
    return;
  }
  std::vector<std::string> words;
  for (const Hash128& other : hashes) words.push_back(other.hex());
  throw Error(ErrorCode::kDesync,
              fmt::format("rank {}: the parameters are not the same on all ranks after step {} "
                          "(epoch {}): {}",
                          group.rank(), step, epoch, describe_difference(words)));
}

}  // namespace gradsync
