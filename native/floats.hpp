// Eight floats side by side: the unit in which the core guesses.
//
// Their sums have no order that the model depends on: what they say is only believed where
// a bound of their error says so.
#pragma once

#include <cstdint>
#include <cstring>

#include "lanes.hpp"

namespace lhtree {

#if defined(__GNUC__) || defined(__clang__)
typedef float GuessPart __attribute__((vector_size(8 * LHTREE_PART)));
#else
struct GuessPart {
  float value[2 * part_size];
};
template <class Combine>
LHTREE_INLINE GuessPart combine_parts(GuessPart a, const GuessPart& b, Combine combine) {
  for (int i = 0; i < 2 * part_size; ++i) a.value[i] = combine(a.value[i], b.value[i]);
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
#endif

struct Floats {
  static constexpr int count = 8;
  static constexpr int part_count = count / (2 * part_size);
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

LHTREE_INLINE Floats load_floats(const float* values) {
  Floats floats;
  for (int i = 0; i < Floats::part_count; ++i)
    std::memcpy(&floats.part[i], values + i * 2 * part_size, sizeof(GuessPart));
  return floats;
}

LHTREE_INLINE void store(float* values, const Floats& floats) {
  for (int i = 0; i < Floats::part_count; ++i)
    std::memcpy(values + i * 2 * part_size, &floats.part[i], sizeof(GuessPart));
}

LHTREE_INLINE Floats fill_floats(float value) {
  float copy[2 * part_size];  // compilers make one instruction of this
  for (float& element : copy) element = value;
  Floats floats;
  for (int i = 0; i < Floats::part_count; ++i) std::memcpy(&floats.part[i], copy, sizeof copy);
  return floats;
}

}  // namespace lhtree
