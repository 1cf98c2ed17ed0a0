#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradsync::store_protocol {

/// The wire protocol of PyTorch's TCPStore (c10d, 2.x): no framing, little-endian integers as the
/// machines of a job have them. A request is one opcode byte and its arguments; strings, keys and
/// values are a uint64 length and the bytes; lists of keys a uint64 count and the keys. The first
/// request of a connection is kValidate with the magic number.
///
///     request                                answer
///     kValidate   magic:u32                  none
///     kPing       nonce:u32                  nonce:u32
///     kSet        key, value                 none
///     kCompareSet key, expected, desired     value
///     kGet        key                        value (empty where there is none: kWait first)
///     kAdd        key, amount:i64            sum:i64
///     kCheck      keys                       CheckAnswer:u8
///     kWait       keys                       WaitAnswer:u8, once all keys exist
///     kNumKeys                               count:i64
///     kDelete     key                        number deleted:i64
///     kAppend     key, value                 none
///     kMultiGet   keys                       a value for each key
///     kMultiSet   count, (key, value) each   none
///     kCancelWait                            WaitAnswer::kCancelled
enum class Opcode : std::uint8_t {
  kValidate,
  kSet,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kNumKeys,
  kDelete,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,
};

enum class CheckAnswer : std::uint8_t { kReady, kNotReady };
enum class WaitAnswer : std::uint8_t { kStopWaiting, kCancelled };

inline constexpr std::uint32_t kMagic = 0x3C85F7CE;
/// PyTorch's server does not prepend a slash to keys, but its clients do. Ours does too, so that
/// both see the same names.
inline constexpr std::string_view kKeyPrefix = "/";

inline constexpr std::uint64_t kMaxKeyBytes = 8 * 1024;
inline constexpr std::uint64_t kMaxValueBytes = 256ull * 1024 * 1024;
inline constexpr std::uint64_t kMaxKeys = 128 * 1024;
/// The parser restarts a list from its beginning whenever more bytes arrive, so lists are kept
/// short.
inline constexpr std::uint64_t kMaxKeyListBytes = 4 * 1024 * 1024;
inline constexpr std::uint64_t kMaxMultiSetBytes = 64 * 1024 * 1024;
/// The largest value that PyTorch's server accepts.
inline constexpr std::size_t kMaxForeignValueBytes = 8 * 1024 * 1024;

/// Builds a request or an answer.
class Writer {
 public:
  Writer() = default;
  explicit Writer(Opcode opcode) { number(opcode); }

  template <typename T>
  Writer& number(T value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    bytes_.append(bytes, sizeof(T));
    return *this;
  }
  Writer& text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    bytes_.append(value);
    return *this;
  }
  Writer& key(std::string_view value) {
    number(static_cast<std::uint64_t>(kKeyPrefix.size() + value.size()));
    bytes_.append(kKeyPrefix).append(value);
    return *this;
  }
  Writer& keys(const std::vector<std::string>& values) {
    number(static_cast<std::uint64_t>(values.size()));
    for (const std::string& value : values) key(value);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Thrown by Reader for a length beyond its limit: the rest of the stream cannot be parsed.
struct Malformed {
  const char* what;
};

/// Parses a request from the front of the received bytes. Every call returns false if the item is
/// incomplete; the request is then parsed again from its start once more bytes arrive.
class Reader {
 public:
  explicit Reader(std::span<const char> bytes) : bytes_(bytes) {}

  template <typename T>
  bool number(T& value) {
    if (bytes_.size() - position_ < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }
  bool key(std::string_view& value) { return text(value, kMaxKeyBytes, "key too long"); }
  bool value(std::string_view& value) { return text(value, kMaxValueBytes, "value too long"); }
  bool count(std::uint64_t& value) {
    if (!number(value)) return false;
    if (value > kMaxKeys) throw Malformed{"too many keys"};
    return true;
  }
  bool keys(std::vector<std::string>& values) {
    std::uint64_t count_of_keys = 0;
    if (!count(count_of_keys)) return false;
    values.clear();
    for (std::uint64_t i = 0; i < count_of_keys; ++i) {
      std::string_view text_of_key;
      if (!key(text_of_key)) return false;
      values.emplace_back(text_of_key);
      limit(kMaxKeyListBytes, "list of keys too long");
    }
    return true;
  }
  void limit(std::uint64_t bytes, const char* complaint) const {
    if (position_ > bytes) throw Malformed{complaint};
  }
  std::size_t position() const noexcept { return position_; }

 private:
  bool text(std::string_view& value, std::uint64_t max_bytes, const char* complaint) {
    std::uint64_t length = 0;
    if (!number(length)) return false;
    if (length > max_bytes) throw Malformed{complaint};
    if (bytes_.size() - position_ < length) return false;
    value = {bytes_.data() + position_, static_cast<std::size_t>(length)};
    position_ += static_cast<std::size_t>(length);
    return true;
  }

  std::span<const char> bytes_;
  std::size_t position_ = 0;
};

}  // namespace gradsync::store_protocol
