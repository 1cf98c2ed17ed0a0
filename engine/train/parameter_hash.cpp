#include "engine/train/parameter_hash.hpp"

#include <bit>
#include <memory>
#include <new>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

namespace gradsync {
namespace {

static_assert(std::endian::native == std::endian::little,
              "hashes are of bytes in memory: they would differ from those of other machines");

Hash128 canonical(XXH128_hash_t hash) {
  XXH128_canonical_t text;
  XXH128_canonicalFromHash(&text, hash);
  Hash128 result;
  std::copy(std::begin(text.digest), std::end(text.digest), result.bytes.begin());
  return result;
}

}  // namespace

std::string Hash128::hex() const {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<Hash128> hash_parameters(std::span<const ParameterPtr> parameters) {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  const std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  if (state == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  std::vector<std::byte> host;
  for (const ParameterPtr& parameter : parameters) {
    const Tensor& data = parameter->data;
    if (data.is_meta()) return std::nullopt;
    const auto size = static_cast<std::size_t>(data.nbytes());
    const std::byte* bytes = data.data();
    if (data.device().type() != DeviceType::kCpu) {
      host.resize(size);
      data.device().copy_to_host(host, data);
      bytes = host.data();
    }
    XXH3_128bits_update(state.get(), bytes, size);
  }
  return canonical(XXH3_128bits_digest(state.get()));
}

Hash128 hash_indices(std::span<const std::int64_t> indices) {
  return canonical(XXH3_128bits(indices.data(), indices.size_bytes()));
}

}  // namespace gradsync
