// Gradients and hessians of rows, and their sums: exact integers, in any order of rows.
#pragma once

#include <cstdint>

namespace lhtree::stats {

constexpr int gradient_bits = 22;  // |g| < 2**22 per unit of weight
constexpr int hessian_bits = 15;   // 0 < h < 2**15 per unit of weight
constexpr int weight_bits = 40;    // of all rows together
static_assert(gradient_bits + weight_bits < 63, "sums of gradients fit a word");
static_assert(hessian_bits + weight_bits < 63, "sums of hessians fit a word");

/// Sums over rows of gradients and hessians; the hessians also count the rows where all are one.
struct PairSums {
  std::int64_t g = 0, h = 0;

  bool is_empty() const { return h == 0; }
  bool reaches(std::int64_t) const { return true; }
  void operator+=(const PairSums& other) {
    g += other.g;
    h += other.h;
  }
  void operator-=(const PairSums& other) {
    g -= other.g;
    h -= other.h;
  }
};

/// Sums over rows of gradients, hessians and weights.
struct TripleSums {
  std::int64_t g = 0, h = 0, w = 0;

  bool is_empty() const { return w == 0; }
  /// Whether the rows weigh enough.
  bool reaches(std::int64_t least_weight) const { return w >= least_weight; }
  void operator+=(const TripleSums& other) {
    g += other.g;
    h += other.h;
    w += other.w;
  }
  void operator-=(const TripleSums& other) {
    g -= other.g;
    h -= other.h;
    w -= other.w;
  }
};

template <class Sums>
Sums operator-(Sums a, const Sums& b) {
  a -= b;
  return a;
}

/// The gradient and the hessian of a row of weight one in one word, so that one addition adds
/// both: the low 28 bits hold the hessians of at most 2**13 rows, the high 36 their gradients.
struct PackedRow {
  using Sums = PairSums;
  static constexpr bool has_weight = false;
  static constexpr bool is_packed = true;  // shorter than its sums
  static constexpr std::int64_t rows_per_word = 1 << 13;
  static constexpr int low_bits = 28;
  static_assert(hessian_bits + 13 <= low_bits, "hessians of 2**13 rows fit the low bits");
  static_assert(gradient_bits + 13 <= 64 - low_bits - 1, "and their gradients the high ones");

  std::int64_t word = 0;

  static PackedRow make(std::int64_t g, std::int64_t h, std::int64_t) {
    return {g * (std::int64_t{1} << low_bits) + h};
  }
  /// The sums of at most `rows_per_word` rows.
  static PackedRow pack(const PairSums& sums) { return make(sums.g, sums.h, 1); }
  PairSums unpack() const { return {gradient(), low()}; }
  bool is_empty() const { return word == 0; }
  void operator+=(const PackedRow& other) { word += other.word; }
  void operator-=(const PackedRow& other) { word -= other.word; }
  std::int64_t low() const { return word & ((std::int64_t{1} << low_bits) - 1); }
  std::int64_t gradient() const { return (word - low()) >> low_bits; }
  std::int64_t weight() const { return 1; }
  void add_to(PairSums& sums) const {
    sums.h += low();
    sums.g += gradient();
  }
};

/// Gradient, hessian and weight of a row, the first two multiplied by the third.
struct WeightedRow {
  using Sums = TripleSums;
  static constexpr bool has_weight = true;
  static constexpr bool is_packed = false;
  static constexpr std::int64_t rows_per_word = 1 << 16;  // a word holds more: see weight_bits

  std::int64_t g = 0, h = 0, w = 0;

  static WeightedRow make(std::int64_t g, std::int64_t h, std::int64_t w) {
    return {g * w, h * w, w};
  }
  void operator+=(const WeightedRow& other) {
    g += other.g;
    h += other.h;
    w += other.w;
  }
  bool is_empty() const { return w == 0; }
  std::int64_t gradient() const { return g / w; }
  std::int64_t weight() const { return w; }
  void add_to(TripleSums& sums) const {
    sums.g += g;
    sums.h += h;
    sums.w += w;
  }
};

}  // namespace lhtree::stats
