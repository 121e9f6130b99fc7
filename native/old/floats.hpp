// Eight floats side by side: the unit in which the core guesses.
//
// Their sums have no order that the model depends on: what they say is only believed where
// a bound of their error says so.
#pragma once

#include <cstdint>
#include <cstring>

#include "lanes.hpp"

namespace lhtree {

inline constexpr int guess_size = 2 * part_size;  // floats in a part

#if defined(__GNUC__) || defined(__clang__)
typedef float GuessPart __attribute__((vector_size(8 * LHTREE_PART)));

/// then[i] where a[i] < b[i], otherwise[i] elsewhere.
LHTREE_INLINE GuessPart choose_below(const GuessPart& a, const GuessPart& b, const GuessPart& then,
                                     const GuessPart& otherwise) {
  return a < b ? then : otherwise;
}
#else
struct GuessPart {
  float value[guess_size];
};
template <class Combine>
LHTREE_INLINE GuessPart combine_parts(GuessPart a, const GuessPart& b, Combine combine) {
  for (int i = 0; i < guess_size; ++i) a.value[i] = combine(a.value[i], b.value[i]);
  return a;
}
LHTREE_INLINE GuessPart operator+(const GuessPart& a, const GuessPart& b) {
  return combine_parts(a, b, [](float x, float y) { return x + y; });
}
LHTREE_INLINE GuessPart operator-(const GuessPart& a, const GuessPart& b) {
  return combine_parts(a, b, [](float x, float y) { return x - y; });
}
LHTREE_INLINE GuessPart operator*(const GuessPart& a, const GuessPart& b) {
  return combine_parts(a, b, [](float x, float y) { return x * y; });
}
LHTREE_INLINE GuessPart choose_below(const GuessPart& a, const GuessPart& b, GuessPart then,
                                     const GuessPart& otherwise) {
  for (int i = 0; i < guess_size; ++i)
    if (!(a.value[i] < b.value[i])) then.value[i] = otherwise.value[i];
  return then;
}
#endif

struct Floats {
  static constexpr int count = 8;
  static constexpr int part_count = count / guess_size;
  GuessPart part[part_count];
};

LHTREE_INLINE Floats operator+(const Floats& a, const Floats& b) {
  Floats floats;
  for (int i = 0; i < Floats::part_count; ++i) floats.part[i] = a.part[i] + b.part[i];
  return floats;
}
LHTREE_INLINE Floats operator-(const Floats& a, const Floats& b) {
  Floats floats;
  for (int i = 0; i < Floats::part_count; ++i) floats.part[i] = a.part[i] - b.part[i];
  return floats;
}
LHTREE_INLINE Floats operator*(const Floats& a, const Floats& b) {
  Floats floats;
  for (int i = 0; i < Floats::part_count; ++i) floats.part[i] = a.part[i] * b.part[i];
  return floats;
}

LHTREE_INLINE Floats choose_below(const Floats& a, const Floats& b, const Floats& then,
                                  const Floats& otherwise) {
  Floats floats;
  for (int i = 0; i < Floats::part_count; ++i)
    floats.part[i] = choose_below(a.part[i], b.part[i], then.part[i], otherwise.part[i]);
  return floats;
}
LHTREE_INLINE Floats find_min(const Floats& a, const Floats& b) { return choose_below(a, b, a, b); }
LHTREE_INLINE Floats find_max(const Floats& a, const Floats& b) { return choose_below(a, b, b, a); }

LHTREE_INLINE Floats load_floats(const float* values) {
  Floats floats;
  for (int i = 0; i < Floats::part_count; ++i)
    std::memcpy(&floats.part[i], values + i * guess_size, sizeof(GuessPart));
  return floats;
}

LHTREE_INLINE void store(float* values, const Floats& floats) {
  for (int i = 0; i < Floats::part_count; ++i)
    std::memcpy(values + i * guess_size, &floats.part[i], sizeof(GuessPart));
}

LHTREE_INLINE Floats fill_floats(float value) {
  float copy[guess_size];  // compilers make one instruction of this
  for (float& element : copy) element = value;
  Floats floats;
  for (int i = 0; i < Floats::part_count; ++i) std::memcpy(&floats.part[i], copy, sizeof copy);
  return floats;
}

/// Exchange rows and columns: element k of floats[i] becomes element i of floats[k].
LHTREE_INLINE void transpose(Floats (&floats)[Floats::count]) {
#if LHTREE_PART == 4
  // Blocks of one, two and four elements change places, as wide registers can.
  for (int i = 0; i < Floats::count; i += 2) {
    const GuessPart a = floats[i].part[0], b = floats[i + 1].part[0];
    floats[i].part[0] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    floats[i + 1].part[0] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int k = 0; k < Floats::count / 2; ++k) {
    const int i = k / 2 * 4 + k % 2;
    const GuessPart a = floats[i].part[0], b = floats[i + 2].part[0];
    floats[i].part[0] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    floats[i + 2].part[0] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < Floats::count / 2; ++i) {
    const GuessPart a = floats[i].part[0], b = floats[i + 4].part[0];
    floats[i].part[0] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    floats[i + 4].part[0] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
#else
  float row[Floats::count][Floats::count], column[Floats::count][Floats::count];
  for (int i = 0; i < Floats::count; ++i) store(row[i], floats[i]);
  for (int i = 0; i < Floats::count; ++i)
    for (int k = 0; k < Floats::count; ++k) column[k][i] = row[i][k];
  for (int k = 0; k < Floats::count; ++k) floats[k] = load_floats(column[k]);
#endif
}

}  // namespace lhtree
