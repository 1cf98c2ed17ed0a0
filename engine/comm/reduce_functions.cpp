#include "gradsync/comm/reduce_functions.hpp"

#include <cstdint>
#include <type_traits>

#include "gradsync/core/error.hpp"
#include "gradsync/core/float16.hpp"

namespace gradsync {
namespace {

template <typename T>
struct Native {
  using Bits = T;
  static T widen(T value) { return value; }
  static T add(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;  // wraps; signed overflow would be undefined
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};

struct Float16 {
  using Bits = std::uint16_t;
  static float widen(Bits bits) { return float16_to_float(bits); }
  static Bits add(Bits a, Bits b) { return float_to_float16(widen(a) + widen(b)); }
};

struct BFloat16 {
  using Bits = std::uint16_t;
  static float widen(Bits bits) { return bfloat16_to_float(bits); }
  static Bits add(Bits a, Bits b) { return float_to_bfloat16(widen(a) + widen(b)); }
};

template <typename Element>
struct Sum {
  using Bits = typename Element::Bits;
  static Bits apply(Bits a, Bits b) { return Element::add(a, b); }
};

template <typename Element>
struct Max {
  using Bits = typename Element::Bits;
  static Bits apply(Bits a, Bits b) { return Element::widen(a) < Element::widen(b) ? b : a; }
};

template <typename Element>
struct Min {
  using Bits = typename Element::Bits;
  static Bits apply(Bits a, Bits b) { return Element::widen(b) < Element::widen(a) ? b : a; }
};

template <typename Op>
void reduce(void* out, const void* a, const void* b, std::size_t elements) {
  using Bits = typename Op::Bits;
  auto* o = static_cast<Bits*>(out);
  const auto* x = static_cast<const Bits*>(a);
  const auto* y = static_cast<const Bits*>(b);
  // The in-place case, used by rings, has its own loop: in a loop over three arrays the compiler's
  // overlap check would select the scalar version.
  if (out == a) {
    for (std::size_t i = 0; i < elements; ++i) o[i] = Op::apply(o[i], y[i]);
  } else if (out == b) {
    for (std::size_t i = 0; i < elements; ++i) o[i] = Op::apply(x[i], o[i]);
  } else {
    for (std::size_t i = 0; i < elements; ++i) o[i] = Op::apply(x[i], y[i]);
  }
}

template <template <typename> class Op>
ReduceFunction for_dtype(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return reduce<Op<Native<float>>>;
    case DType::kFloat64:
      return reduce<Op<Native<double>>>;
    case DType::kFloat16:
      return reduce<Op<Float16>>;
    case DType::kBFloat16:
      return reduce<Op<BFloat16>>;
    case DType::kInt32:
      return reduce<Op<Native<std::int32_t>>>;
    case DType::kInt64:
      return reduce<Op<Native<std::int64_t>>>;
    case DType::kUInt8:
      return reduce<Op<Native<std::uint8_t>>>;
  }
  throw Error(ErrorCode::kInternal, "reduce_function: unknown dtype");
}

}  // namespace

ReduceFunction reduce_function(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:  // inputs are already scaled
      return for_dtype<Sum>(dtype);
    case ReduceOp::kMax:
      return for_dtype<Max>(dtype);
    case ReduceOp::kMin:
      return for_dtype<Min>(dtype);
  }
  throw Error(ErrorCode::kInternal, "reduce_function: unknown operation");
}

}  // namespace gradsync
