#pragma once

/// Vector code without per-file compiler flags: a kernel is an always-inlined function, and
/// `dispatch` compiles it twice, for AVX2 with FMA and for the baseline, and selects one at run
/// time.
///
/// Both copies give the same bits: the project is compiled with -ffp-contract=off and without
/// fast-math, so vectorization never reorders a rounding, and std::fma rounds once in both (an
/// instruction in one, the C library's in the other).
#define GRADSYNC_KERNEL [[gnu::always_inline]] inline

/// Put before a loop over the lanes of a fixed-size array. Without it GCC unrolls the loop first,
/// and the pieces are then too small for its vectorizer.
#if defined(__GNUC__) && !defined(__clang__)
#define GRADSYNC_LANE_LOOP _Pragma("GCC unroll 1")
#else
#define GRADSYNC_LANE_LOOP
#endif

namespace gradsync::simd {

inline bool has_avx2_and_fma() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

#if defined(__x86_64__)
template <typename Kernel, typename... Args>
[[gnu::target("avx2,fma")]] auto run_avx2(Kernel kernel, Args... args) {
  return kernel(args...);
}
#endif

/// Runs `kernel(args...)`, compiled for the best instruction set of this processor. `kernel` is a
/// stateless function object whose call operator is a GRADSYNC_KERNEL.
template <typename Kernel, typename... Args>
auto dispatch(Kernel kernel, Args... args) {
#if defined(__x86_64__)
  if (has_avx2_and_fma()) return run_avx2(kernel, args...);
#endif
  return kernel(args...);
}

}  // namespace gradsync::simd
