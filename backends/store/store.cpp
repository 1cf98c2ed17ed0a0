#include "gradsync/backends/store/store.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

namespace gradsync {
namespace {

constexpr std::size_t kChunkBytes = 4 * 1024 * 1024;

std::string chunk_key(const std::string& key, std::size_t index) {
  return fmt::format("{}/{}", key, index);
}

}  // namespace

PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> store)
    : prefix_(std::move(prefix) + "/"), store_(std::move(store)) {}

std::vector<std::string> PrefixStore::prefixed(const std::vector<std::string>& keys) const {
  std::vector<std::string> result;
  result.reserve(keys.size());
  for (const std::string& key : keys) result.push_back(prefixed(key));
  return result;
}

void PrefixStore::set(const std::string& key, std::string_view value, Seconds timeout) {
  store_->set(prefixed(key), value, timeout);
}

std::string PrefixStore::get(const std::string& key, Seconds timeout) {
  return store_->get(prefixed(key), timeout);
}

void PrefixStore::wait(const std::vector<std::string>& keys, Seconds timeout) {
  try {
    store_->wait(prefixed(keys), timeout);
  } catch (const StoreTimeout& e) {
    std::vector<std::string> missing;
    for (const std::string& key : e.missing_keys()) missing.push_back(key.substr(prefix_.size()));
    throw StoreTimeout(e.what(), std::move(missing));
  }
}

std::int64_t PrefixStore::add(const std::string& key, std::int64_t amount, Seconds timeout) {
  return store_->add(prefixed(key), amount, timeout);
}

std::string PrefixStore::compare_set(const std::string& key, std::string_view expected,
                                     std::string_view desired, Seconds timeout) {
  return store_->compare_set(prefixed(key), expected, desired, timeout);
}

bool PrefixStore::check(const std::vector<std::string>& keys, Seconds timeout) {
  return store_->check(prefixed(keys), timeout);
}

bool PrefixStore::remove(const std::string& key, Seconds timeout) {
  return store_->remove(prefixed(key), timeout);
}

void set_large(Store& store, const std::string& key, std::string_view value, Seconds timeout) {
  const std::size_t chunks = (value.size() + kChunkBytes - 1) / kChunkBytes;
  for (std::size_t i = 0; i < chunks; ++i) {
    store.set(chunk_key(key, i), value.substr(i * kChunkBytes, kChunkBytes), timeout);
  }
  store.set(key, std::to_string(chunks), timeout);
}

std::string get_large(Store& store, const std::string& key, Seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const std::string announced = store.get(key, timeout);
  std::size_t chunks = 0;
  const auto parsed =
      std::from_chars(announced.data(), announced.data() + announced.size(), chunks);
  if (parsed.ec != std::errc() || parsed.ptr != announced.data() + announced.size()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("store: key {} does not hold a number of chunks", key));
  }
  std::string value;
  for (std::size_t i = 0; i < chunks; ++i) {
    value += store.get(chunk_key(key, i), deadline - std::chrono::steady_clock::now());
  }
  return value;
}

}  // namespace gradsync
