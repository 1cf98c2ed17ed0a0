#include "gradsync/backends/nccl/signature_comparison.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "gradsync/comm/signature.hpp"

namespace gradsync {
namespace {

/// No rank can be this far ahead of another: NCCL accepts fewer calls than this before it blocks.
constexpr std::int64_t kWindow = 4096;

}  // namespace

SignatureComparison::SignatureComparison(const std::shared_ptr<Store>& store,
                                         const std::string& group, int rank, int job_rank,
                                         bool tidies, Seconds timeout, OnMismatch on_mismatch)
    : store_("group/" + group + "/signature", store),
      rank_(rank),
      job_rank_(job_rank),
      tidies_(tidies),
      timeout_(timeout),
      on_mismatch_(std::move(on_mismatch)),
      thread_([this] { run(); }) {}

SignatureComparison::~SignatureComparison() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void SignatureComparison::add(const CollectiveRecord& record) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    queue_.push_back(record);
    wake = idle_;
  }
  if (wake) changed_.notify_all();  // a system call, which a busy thread does not need
}

void SignatureComparison::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_ || (queue_.empty() && idle_); });
}

void SignatureComparison::run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    idle_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) break;
    idle_ = false;
    const CollectiveRecord record = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::string cause;
    bool store_answers = true;
    try {
      cause = mismatch(record);
    } catch (const Error&) {
      store_answers = false;  // its host is gone, which ends the job anyway
    }
    if (!cause.empty()) on_mismatch_(cause);
    lock.lock();
    over_ = !store_answers || !cause.empty();
  }
  over_ = true;
  changed_.notify_all();
}

std::string SignatureComparison::mismatch(const CollectiveRecord& record) {
  if (is_point_to_point(record.op)) return message_mismatch(record);
  const std::string mine = signature(record);
  const std::string key = std::to_string(record.sequence);
  const std::string first =
      store_.compare_set(key, "", std::to_string(job_rank_) + " " + mine, timeout_);
  if (tidies_ && record.sequence >= kWindow) {
    store_.remove(std::to_string(record.sequence - kWindow), timeout_);
  }
  const std::string theirs = first.substr(first.find(' ') + 1);
  if (theirs != mine) {
    return describe_mismatch(record.sequence, std::stoi(first), theirs, job_rank_, mine);
  }
  return record.op == OpType::kAlltoall ? split_mismatch(record) : std::string();
}

std::string SignatureComparison::message_mismatch(const CollectiveRecord& record) {
  const std::string mine = signature(record);
  const std::string key = record.group + "/" + std::to_string(record.sequence);
  const std::string own = std::to_string(job_rank_) + " " + mine;
  const std::string first = store_.compare_set(key, "", own, timeout_);
  if (first == own) return {};  // the other rank compares
  store_.remove(key, timeout_);
  const std::string theirs = first.substr(first.find(' ') + 1);
  if (signatures_match(theirs, mine)) return {};
  return describe_mismatch(record.sequence, std::stoi(first), theirs, job_rank_, mine);
}

std::string SignatureComparison::split_mismatch(const CollectiveRecord& record) {
  const AlltoallSplits& splits = *record.splits;
  for (int peer = 0; peer < static_cast<int>(splits.input.size()); ++peer) {
    if (peer == rank_) continue;
    const std::string key =
        fmt::format("{}/{}-{}", record.sequence, std::min(rank_, peer), std::max(rank_, peer));
    const std::int64_t sent = splits.input[static_cast<std::size_t>(peer)];
    const std::int64_t expected = splits.output[static_cast<std::size_t>(peer)];
    const std::string own = fmt::format("{} {} {}", job_rank_, sent, expected);
    const std::string first = store_.compare_set(key, "", own, timeout_);
    if (first == own) continue;  // the other rank compares
    store_.remove(key, timeout_);
    std::istringstream words(first);
    int job_peer = 0;
    std::int64_t sent_here = 0, expected_there = 0;
    words >> job_peer >> sent_here >> expected_there;
    if (sent_here != expected) {
      return describe_split_mismatch(record, job_peer, sent_here, job_rank_, expected);
    }
    if (sent != expected_there) {
      return describe_split_mismatch(record, job_rank_, sent, job_peer, expected_there);
    }
  }
  return {};
}

}  // namespace gradsync
