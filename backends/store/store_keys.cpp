#include "gradsync/backends/store/store_keys.hpp"

#include <charconv>

#include "gradsync/backends/store/store_protocol.hpp"

namespace gradsync {

std::int64_t StoreKeys::add(const std::string& key, std::int64_t amount) {
  const std::string old = get(key);
  std::int64_t sum = 0;
  if (!old.empty()) {
    const auto parsed = std::from_chars(old.data(), old.data() + old.size(), sum);
    if (parsed.ec != std::errc() || parsed.ptr != old.data() + old.size()) {
      throw store_protocol::Malformed{"add to a value that is not a number"};
    }
  }
  if (__builtin_add_overflow(sum, amount, &sum))
    throw store_protocol::Malformed{"counter overflow"};
  set(key, std::to_string(sum));
  return sum;
}

void StoreKeys::wait(StoreWaiter& waiter, const std::vector<std::string>& keys) {
  cancel_wait(waiter);
  std::set<std::string> missing;
  for (const std::string& key : keys) {
    if (values_.count(key) == 0) missing.insert(key);
  }
  if (missing.empty()) {
    waiter.keys_exist();
    return;
  }
  for (const std::string& key : missing) waiting_for_[key].insert(&waiter);
  missing_of_[&waiter] = std::move(missing);
}

void StoreKeys::cancel_wait(StoreWaiter& waiter) {
  const auto found = missing_of_.find(&waiter);
  if (found == missing_of_.end()) return;
  for (const std::string& key : found->second) {
    const auto waiting = waiting_for_.find(key);
    waiting->second.erase(&waiter);
    if (waiting->second.empty()) waiting_for_.erase(waiting);
  }
  missing_of_.erase(found);
}

void StoreKeys::wake(const std::string& key) {
  const auto found = waiting_for_.find(key);
  if (found == waiting_for_.end()) return;
  const std::set<StoreWaiter*> waiters = std::move(found->second);
  waiting_for_.erase(found);
  for (StoreWaiter* waiter : waiters) {
    const auto missing = missing_of_.find(waiter);
    missing->second.erase(key);
    if (!missing->second.empty()) continue;
    missing_of_.erase(missing);
    waiter->keys_exist();
  }
}

}  // namespace gradsync
