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
inline constexpr std::int64_t line_bytes = 64;  // of a common cache

// Function multi-versioning: the loader picks the widest version that the
// machine can run. A build stays generic (no -march=native) and still uses wide
// registers. It needs the loader of glibc; sanitizers do without.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(LHTREE_SANITIZE) && \
    (defined(__clang__) || __GNUC__ >= 12)
#define LHTREE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define LHTREE_PART 4
#else
#define LHTREE_CLONES
#define LHTREE_PART 2
#endif

// Lanes are made of parts that fit into one register each: compilers keep wider vectors
// in memory.
inline constexpr int part_size = LHTREE_PART;
inline constexpr int part_count = lane_count / part_size;

#if defined(__GNUC__) || defined(__clang__)
#define LHTREE_INLINE inline __attribute__((always_inline))
typedef double Part __attribute__((vector_size(8 * LHTREE_PART)));
typedef float FloatPart __attribute__((vector_size(4 * LHTREE_PART)));

LHTREE_INLINE Part widen(const FloatPart& part) { return __builtin_convertvector(part, Part); }
LHTREE_INLINE Part choose_present(const Part& values, const Part& there, const Part& missing) {
  return values == values ? there : missing;
}
#else
#define LHTREE_INLINE __forceinline
struct Part {
  double value[part_size];
  double& operator[](int i) { return value[i]; }
  double operator[](int i) const { return value[i]; }
};
struct FloatPart {
  float value[part_size];
};
LHTREE_INLINE Part operator+(Part a, const Part& b) {
  for (int i = 0; i < part_size; ++i) a.value[i] += b.value[i];
  return a;
}
LHTREE_INLINE Part operator-(Part a, const Part& b) {
  for (int i = 0; i < part_size; ++i) a.value[i] -= b.value[i];
  return a;
}
LHTREE_INLINE Part operator*(Part a, const Part& b) {
  for (int i = 0; i < part_size; ++i) a.value[i] *= b.value[i];
  return a;
}
LHTREE_INLINE Part widen(const FloatPart& part) {
  Part wide;
  for (int i = 0; i < part_size; ++i) wide[i] = part.value[i];
  return wide;
}
LHTREE_INLINE Part choose_present(const Part& values, const Part& there, const Part& missing) {
  Part part;
  for (int i = 0; i < part_size; ++i) part[i] = values[i] == values[i] ? there[i] : missing[i];
  return part;
}
#endif

struct Lanes {
  Part part[part_count];

  double operator[](std::int64_t i) const { return part[i / part_size][i % part_size]; }
  void add(std::int64_t i, double value) { part[i / part_size][i % part_size] += value; }
  void set(std::int64_t i, double value) { part[i / part_size][i % part_size] = value; }
};

LHTREE_INLINE Lanes operator+(const Lanes& a, const Lanes& b) {
  Lanes lanes;
  for (int i = 0; i < part_count; ++i) lanes.part[i] = a.part[i] + b.part[i];
  return lanes;
}
LHTREE_INLINE Lanes operator-(const Lanes& a, const Lanes& b) {
  Lanes lanes;
  for (int i = 0; i < part_count; ++i) lanes.part[i] = a.part[i] - b.part[i];
  return lanes;
}
LHTREE_INLINE Lanes operator*(const Lanes& a, const Lanes& b) {
  Lanes lanes;
  for (int i = 0; i < part_count; ++i) lanes.part[i] = a.part[i] * b.part[i];
  return lanes;
}

LHTREE_INLINE Lanes load(const double* values) {
  Lanes lanes;
  for (int i = 0; i < part_count; ++i)
    std::memcpy(&lanes.part[i], values + i * part_size, sizeof(Part));
  return lanes;
}

LHTREE_INLINE Lanes load(const float* values) {
  Lanes lanes;
  for (int i = 0; i < part_count; ++i) {
    FloatPart narrow;
    std::memcpy(&narrow, values + i * part_size, sizeof narrow);
    lanes.part[i] = widen(narrow);
  }
  return lanes;
}

LHTREE_INLINE void store(double* values, const Lanes& lanes) {
  for (int i = 0; i < part_count; ++i)
    std::memcpy(values + i * part_size, &lanes.part[i], sizeof(Part));
}

LHTREE_INLINE Lanes fill(double value) {
  Part part;
  for (int i = 0; i < part_size; ++i) part[i] = value;
  Lanes lanes;
  for (int i = 0; i < part_count; ++i) lanes.part[i] = part;
  return lanes;
}

/// The values, those of `other` where a value is missing (NaN).
LHTREE_INLINE Lanes fill_missing(const Lanes& values, const Lanes& other) {
  Lanes lanes;
  for (int i = 0; i < part_count; ++i)
    lanes.part[i] = choose_present(values.part[i], values.part[i], other.part[i]);
  return lanes;
}

/// `value` where one of `values` is there, 0 where it is missing.
LHTREE_INLINE Lanes fill_present(const Lanes& values, double value) {
  const Lanes there = fill(value), missing = fill(0.0);
  Lanes lanes;
  for (int i = 0; i < part_count; ++i)
    lanes.part[i] = choose_present(values.part[i], there.part[i], missing.part[i]);
  return lanes;
}

/// The eight partial sums combined as ((0+4)+(2+6)) + ((1+5)+(3+7)): each step adds
/// the upper half to the lower.
LHTREE_INLINE double combine(const Lanes& s) {
  Part half[part_count / 2];
  for (int i = 0; i < part_count / 2; ++i) half[i] = s.part[i] + s.part[i + part_count / 2];
  if constexpr (part_size == 2) {
    const Part quarter = half[0] + half[part_count / 2 - 1];
    return quarter[0] + quarter[1];
  } else {
    return (half[0][0] + half[0][2]) + (half[0][1] + half[0][part_size - 1]);
  }
}

/// Ask for `n` values that will be read soon; they lie where no hardware expects them.
template <class T>
LHTREE_INLINE void prefetch(const T* values, std::int64_t n) {
#if defined(__GNUC__) || defined(__clang__)
  constexpr std::int64_t values_per_line = line_bytes / sizeof(T);
  for (std::int64_t i = 0; i < n; i += values_per_line) __builtin_prefetch(values + i);
#else
  (void)values, (void)n;
#endif
}

/// Ask for a line that will be read after a while: the second-level cache will do.
LHTREE_INLINE void prefetch_line(const void* line) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(line, 0, 2);
#else
  (void)line;
#endif
}

/// Smallest multiple of eight that holds `n` columns.
inline constexpr std::int64_t padded(std::int64_t n) {
  return (n + lane_count - 1) / lane_count * lane_count;
}

}  // namespace lhtree
