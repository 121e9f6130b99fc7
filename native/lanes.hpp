// Eight doubles side by side: the unit in which the core adds.
//
// By definition every projection is added up as eight partial sums, column j in
// sum j mod 8. One `Lanes` value holds these sums, whatever the width of the
// registers that the compiler maps it to, so the bits never depend on the
// instruction set. Nothing here may be compiled with contraction (fused
// multiply-add) or with -ffast-math.
#pragma once

#include <cstdint>
#include <cstdlib>  // defines __GLIBC__ where there is one
#include <cstring>

namespace lhtree {

inline constexpr std::int64_t lane_count = 8;

#if defined(__GNUC__) || defined(__clang__)
#define LHTREE_INLINE inline __attribute__((always_inline))
typedef double Lanes __attribute__((vector_size(64)));
typedef float FloatLanes __attribute__((vector_size(32)));
#else
#define LHTREE_INLINE __forceinline
struct Lanes {
  double lane[lane_count];
  double& operator[](std::int64_t i) { return lane[i]; }
  double operator[](std::int64_t i) const { return lane[i]; }
};
LHTREE_INLINE Lanes operator+(Lanes a, const Lanes& b) {
  for (int i = 0; i < lane_count; ++i) a.lane[i] += b.lane[i];
  return a;
}
LHTREE_INLINE Lanes operator-(Lanes a, const Lanes& b) {
  for (int i = 0; i < lane_count; ++i) a.lane[i] -= b.lane[i];
  return a;
}
LHTREE_INLINE Lanes operator*(Lanes a, const Lanes& b) {
  for (int i = 0; i < lane_count; ++i) a.lane[i] *= b.lane[i];
  return a;
}
#endif

// Function multi-versioning: the loader picks the widest version that the
// machine can run. A build stays generic (no -march=native) and still uses wide
// registers. It needs the loader of glibc; sanitizers do without.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(LHTREE_SANITIZE) && \
    (defined(__clang__) || __GNUC__ >= 12)
#define LHTREE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LHTREE_CLONES
#endif

LHTREE_INLINE Lanes load(const double* values) {
  Lanes lanes;
  std::memcpy(&lanes, values, sizeof lanes);
  return lanes;
}

LHTREE_INLINE Lanes load(const float* values) {
#if defined(__GNUC__) || defined(__clang__)
  FloatLanes narrow;
  std::memcpy(&narrow, values, sizeof narrow);
  return __builtin_convertvector(narrow, Lanes);
#else
  Lanes lanes;
  for (int i = 0; i < lane_count; ++i) lanes.lane[i] = values[i];
  return lanes;
#endif
}

LHTREE_INLINE void store(double* values, const Lanes& lanes) {
  std::memcpy(values, &lanes, sizeof lanes);
}

LHTREE_INLINE Lanes fill(double value) {
  Lanes lanes;
  for (int i = 0; i < lane_count; ++i) lanes[i] = value;
  return lanes;
}

/// The values, those of `other` where a value is missing (NaN).
LHTREE_INLINE Lanes fill_missing(const Lanes& values, const Lanes& other) {
#if defined(__GNUC__) || defined(__clang__)
  return values == values ? values : other;
#else
  Lanes lanes;
  for (int i = 0; i < lane_count; ++i) lanes[i] = values[i] == values[i] ? values[i] : other[i];
  return lanes;
#endif
}

/// `value` where one of `values` is there, 0 where it is missing.
LHTREE_INLINE Lanes fill_present(const Lanes& values, double value) {
#if defined(__GNUC__) || defined(__clang__)
  return values == values ? fill(value) : fill(0.0);
#else
  Lanes lanes;
  for (int i = 0; i < lane_count; ++i) lanes[i] = values[i] == values[i] ? value : 0.0;
  return lanes;
#endif
}

/// The eight partial sums combined as ((0+4)+(2+6)) + ((1+5)+(3+7)): each step adds
/// the upper half to the lower.
LHTREE_INLINE double combine(const Lanes& s) {
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
  typedef double Half __attribute__((vector_size(32)));
  typedef double Quarter __attribute__((vector_size(16)));
  const Half half =
      __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
  const Quarter quarter =
      __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
  return quarter[0] + quarter[1];
#else
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
#endif
}

/// Ask for `n` values that will be read soon; they lie where no hardware expects them.
template <class T>
LHTREE_INLINE void prefetch(const T* values, std::int64_t n) {
#if defined(__GNUC__) || defined(__clang__)
  constexpr std::int64_t values_per_line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < n; i += values_per_line) __builtin_prefetch(values + i);
#else
  (void)values, (void)n;
#endif
}

/// Smallest multiple of eight that holds `n` columns.
inline constexpr std::int64_t padded(std::int64_t n) {
  return (n + lane_count - 1) / lane_count * lane_count;
}

}  // namespace lhtree
