#include "engine/ddp/ddp_options.hpp"

#include <fmt/format.h>

#include "engine/core/error.hpp"

namespace gradsync {

BucketCaps bucket_caps(const DdpOptions& options) {
  if (!options.bucket_cap_mb) return {options.first_bucket_bytes, kDefaultBucketCapBytes};
  const double cap = *options.bucket_cap_mb * 1024 * 1024;
  if (!(cap > 0 && cap < 0x1p62)) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("DDP: bucket_cap_mb must be positive, got {}", *options.bucket_cap_mb));
  }
  const auto bytes = static_cast<Bytes>(cap);
  const bool first_is_fixed = options.pytorch_version < PytorchVersion{2, 4};
  return {first_is_fixed ? options.first_bucket_bytes : bytes, bytes};
}

}  // namespace gradsync
