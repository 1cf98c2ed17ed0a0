#include "gradsync/ddp/ddp_options.hpp"

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {

namespace {

Bytes cap_bytes(double mebibytes, const char* option) {
  const double cap = mebibytes * 1024 * 1024;
  if (!(cap > 0 && cap < 0x1p62)) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("DDP: {} must be positive, got {}", option, mebibytes));
  }
  return static_cast<Bytes>(cap);
}

}  // namespace

BucketCaps bucket_caps(const DdpOptions& options) {
  BucketCaps caps{options.first_bucket_bytes, kDefaultBucketCapBytes};
  if (options.bucket_cap_mb) {
    caps.others = cap_bytes(*options.bucket_cap_mb, "bucket_cap_mb");
    const bool first_is_fixed = options.pytorch_version < PytorchVersion{2, 4};
    if (!first_is_fixed) caps.first = caps.others;
  }
  if (options.first_bucket_cap_mb) {
    caps.first = cap_bytes(*options.first_bucket_cap_mb, "first_bucket_cap_mb");
  }
  return caps;
}

}  // namespace gradsync
