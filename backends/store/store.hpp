#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/core/units.hpp"

namespace gradsync {

/// A key-value store shared by all ranks of a job: the basis of rendezvous, failure propagation,
/// shutdown and report gathering. Values are bytes.
///
/// Every call has a timeout, counted from the call; `get` and `wait` with zero or less only poll.
/// On timeout a call throws StoreTimeout (code kTimeout); on a lost connection it throws
/// Error(kRankDied), because the store's host is gone.
///
/// Thread-safety: several threads may make any calls concurrently; a thread that blocks in `get` or
/// `wait` does not delay the others.
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, std::string_view value, Seconds timeout) = 0;
  /// Blocks until the key exists.
  virtual std::string get(const std::string& key, Seconds timeout) = 0;
  /// Blocks until all keys exist. A StoreTimeout lists the missing ones.
  virtual void wait(const std::vector<std::string>& keys, Seconds timeout) = 0;
  /// Adds to a decimal counter (0 if the key does not exist) and returns the sum.
  virtual std::int64_t add(const std::string& key, std::int64_t amount, Seconds timeout) = 0;
  /// Stores `desired` if the key holds `expected`, or if the key does not exist and `expected` is
  /// empty. Returns the key's value afterwards (`expected` if it still does not exist).
  virtual std::string compare_set(const std::string& key, std::string_view expected,
                                  std::string_view desired, Seconds timeout) = 0;
  /// True if all keys exist.
  virtual bool check(const std::vector<std::string>& keys, Seconds timeout) = 0;
  /// Returns whether the key existed.
  virtual bool remove(const std::string& key, Seconds timeout) = 0;
};

/// A timeout before the keys existed.
class StoreTimeout : public Error {
 public:
  StoreTimeout(const std::string& message, std::vector<std::string> missing_keys)
      : Error(ErrorCode::kTimeout, message), missing_keys_(std::move(missing_keys)) {}
  /// With the names used by the caller.
  const std::vector<std::string>& missing_keys() const noexcept { return missing_keys_; }

 private:
  std::vector<std::string> missing_keys_;
};

/// The same store with every key prefixed by `prefix`/, so that runs, attempts and groups can share
/// one server (e.g. torchrun's) without collisions.
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

/// Stores a value of any size in stores that limit the size of a value (PyTorch's server: 8 MiB):
/// in chunks `key`/0, `key`/1, ..., announced by `key` itself, which is set last.
void set_large(Store& store, const std::string& key, std::string_view value, Seconds timeout);
/// Blocks until the value exists.
std::string get_large(Store& store, const std::string& key, Seconds timeout);

}  // namespace gradsync
