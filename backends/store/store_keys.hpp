#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gradsync {

/// Somebody who waits for keys.
class StoreWaiter {
 public:
  /// The keys that it waits for exist.
  virtual void keys_exist() = 0;

 protected:
  ~StoreWaiter() = default;
};

/// The keys of a store, and who waits for them. Used only by the server's thread. A missing key
/// reads as the empty string, as in PyTorch's TCPStore.
class StoreKeys {
 public:
  void set(const std::string& key, std::string value) {
    values_[key] = std::move(value);
    wake(key);
  }
  std::string get(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::string() : found->second;
  }
  std::string compare_set(const std::string& key, std::string_view expected,
                          std::string_view desired) {
    const auto found = values_.find(key);
    if (found == values_.end() && !expected.empty()) return std::string(expected);
    if (found == values_.end() || found->second == expected) set(key, std::string(desired));
    return values_[key];
  }
  /// Throws store_protocol::Malformed if the value is not a number, or the sum overflows.
  std::int64_t add(const std::string& key, std::int64_t amount);
  void append(const std::string& key, std::string_view value) {
    values_[key] += value;
    wake(key);
  }
  std::int64_t remove(const std::string& key) {
    return static_cast<std::int64_t>(values_.erase(key));
  }
  bool has_all(const std::vector<std::string>& keys) const {
    return std::all_of(keys.begin(), keys.end(),
                       [&](const std::string& key) { return values_.count(key) > 0; });
  }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }

  /// Calls keys_exist at once if all keys exist, otherwise when the last of them is set.
  void wait(StoreWaiter& waiter, const std::vector<std::string>& keys);
  void cancel_wait(StoreWaiter& waiter);

 private:
  void wake(const std::string& key);

  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::set<StoreWaiter*>> waiting_for_;
  std::unordered_map<StoreWaiter*, std::set<std::string>> missing_of_;
};

}  // namespace gradsync
