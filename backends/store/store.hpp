#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/core/units.hpp"

namespace gradsync {

/// A key-value store that all ranks of a job share: what rendezvous, failure spreading, shutdown
/// and the gathering of reports are made of. Values are bytes.
///
/// Every call has a deadline, given as a duration from the call on; `get` and `wait` with zero or
/// less only look. When it ends the call throws StoreTimeout (code kTimeout); a lost connection
/// throws Error(kRankDied), because the store's host is gone.
///
/// Thread-safety: all calls may be made by several threads at once; a thread that blocks in `get`
/// or `wait` does not delay the others.
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, std::string_view value, Seconds timeout) = 0;
  /// Blocks until the key exists.
  virtual std::string get(const std::string& key, Seconds timeout) = 0;
  /// Blocks until all keys exist. The StoreTimeout lists those that do not.
  virtual void wait(const std::vector<std::string>& keys, Seconds timeout) = 0;
  /// Adds to a decimal counter (0 where the key does not exist) and returns the sum.
  virtual std::int64_t add(const std::string& key, std::int64_t amount, Seconds timeout) = 0;
  /// Stores `desired` if the key holds `expected`, or if the key does not exist and `expected` is
  /// empty. Returns what the key holds afterwards (`expected` where it still does not exist).
  virtual std::string compare_set(const std::string& key, std::string_view expected,
                                  std::string_view desired, Seconds timeout) = 0;
  /// True if all keys exist.
  virtual bool check(const std::vector<std::string>& keys, Seconds timeout) = 0;
  /// True if the key existed.
  virtual bool remove(const std::string& key, Seconds timeout) = 0;
};

/// A deadline that ended before the keys were there.
class StoreTimeout : public Error {
 public:
  StoreTimeout(const std::string& message, std::vector<std::string> missing_keys)
      : Error(ErrorCode::kTimeout, message), missing_keys_(std::move(missing_keys)) {}
  /// As the caller spelled them.
  const std::vector<std::string>& missing_keys() const noexcept { return missing_keys_; }

 private:
  std::vector<std::string> missing_keys_;
};

/// The same store under keys that begin with `prefix`/, so that runs, attempts and groups that
/// share one server (torchrun's, for example) do not meet.
class PrefixStore final : public Store {
 public:
  PrefixStore(std::string prefix, std::shared_ptr<Store> store);

  void set(const std::string& key, std::string_view value, Seconds timeout) override;
  std::string get(const std::string& key, Seconds timeout) override;
  void wait(const std::vector<std::string>& keys, Seconds timeout) override;
  std::int64_t add(const std::string& key, std::int64_t amount, Seconds timeout) override;
  std::string compare_set(const std::string& key, std::string_view expected,
                          std::string_view desired, Seconds timeout) override;
  bool check(const std::vector<std::string>& keys, Seconds timeout) override;
  bool remove(const std::string& key, Seconds timeout) override;

 private:
  std::string prefixed(const std::string& key) const { return prefix_ + key; }
  std::vector<std::string> prefixed(const std::vector<std::string>& keys) const;

  std::string prefix_;
  std::shared_ptr<Store> store_;
};

/// Values of any size through stores that limit theirs (PyTorch's server takes 8 MiB): in chunks
/// under `key`/0, `key`/1, ..., announced by `key` itself, which is set last.
void set_large(Store& store, const std::string& key, std::string_view value, Seconds timeout);
/// Blocks until the value is there.
std::string get_large(Store& store, const std::string& key, Seconds timeout);

}  // namespace gradsync
