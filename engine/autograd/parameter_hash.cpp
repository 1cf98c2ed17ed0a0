#include "gradsync/autograd/parameter_hash.hpp"

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

/// The tensor's bytes in host memory; `host` holds a copy for other devices.
std::span<const std::byte> bytes_of(const Tensor& tensor, std::vector<std::byte>& host) {
  const auto size = static_cast<std::size_t>(tensor.nbytes());
  if (tensor.device().type() == DeviceType::kCpu) return {tensor.data(), size};
  host.resize(size);
  tensor.device().copy_to_host(host, tensor);
  return host;
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
    if (parameter->data.is_meta()) return std::nullopt;
    const std::span<const std::byte> bytes = bytes_of(parameter->data, host);
    XXH3_128bits_update(state.get(), bytes.data(), bytes.size());
  }
  return canonical(XXH3_128bits_digest(state.get()));
}

Hash128 hash_indices(std::span<const std::int64_t> indices) {
  return canonical(XXH3_128bits(indices.data(), indices.size_bytes()));
}

Hash128 hash_text(std::string_view text) {
  return canonical(XXH3_128bits(text.data(), text.size()));
}

std::vector<std::uint32_t> checksum(std::span<const Tensor> tensors) {
  std::vector<std::uint32_t> sums;
  std::vector<std::byte> host;
  for (const Tensor& tensor : tensors) {
    if (tensor.is_meta()) return {};
    const std::span<const std::byte> bytes = bytes_of(tensor, host);
    sums.push_back(static_cast<std::uint32_t>(XXH3_64bits(bytes.data(), bytes.size())));
  }
  return sums;
}

}  // namespace gradsync
