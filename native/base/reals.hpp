// exp and log by + - * / alone: libraries differ in the last bit, these sequences do not.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/instructions.hpp"

namespace lhtree::base {

/// floor(x + 1/2), the one way in which reals become integers.
LHTREE_INLINED double round_half_up(double x) { return std::floor(x + 0.5); }

/// An integer below 2**51 as a double, by additions alone, which compilers vectorise.
LHTREE_INLINED double to_double(std::int64_t x) {
  constexpr double magic = 0x1.8p52;
  return std::bit_cast<double>(std::bit_cast<std::int64_t>(magic) + x) - magic;
}

/// A double that holds an integer below 2**51, likewise.
LHTREE_INLINED std::int64_t to_integer(double x) {
  constexpr double magic = 0x1.8p52;
  return std::bit_cast<std::int64_t>(x + magic) - std::bit_cast<std::int64_t>(magic);
}

/// c[0] x**(n - 1) + ... + c[n - 1] by Horner's rule, written out: compilers do not vectorise over
/// an inner loop.
template <std::size_t... k>
LHTREE_INLINED double evaluate(double x, const double* c, std::index_sequence<k...>) {
  double p = c[0];
  ((p = p * x + c[k + 1]), ...);
  return p;
}

/// e**x, about to the last bit; clipped beyond 700.
LHTREE_INLINED double exp(double x) {
  constexpr double ln2_high = 6.93147180369123816490e-01;  // exact times an exponent
  constexpr double ln2_low = 1.90821492927058770002e-10;
  constexpr double log2_e = 1.44269504088896340736;
  constexpr double one_over_factorial[] = {1.0 / 6227020800.0,
                                           1.0 / 479001600.0,
                                           1.0 / 39916800.0,
                                           1.0 / 3628800.0,
                                           1.0 / 362880.0,
                                           1.0 / 40320.0,
                                           1.0 / 5040.0,
                                           1.0 / 720.0,
                                           1.0 / 120.0,
                                           1.0 / 24.0,
                                           1.0 / 6.0,
                                           1.0 / 2.0,
                                           1.0,
                                           1.0};
  x = x < -700.0 ? -700.0 : x > 700.0 ? 700.0 : x;
  const double k = std::floor(x * log2_e + 0.5);
  const double r = (x - k * ln2_high) - k * ln2_low;
  const double p = evaluate(r, one_over_factorial, std::make_index_sequence<13>());
  // 2**k goes into the exponent: p is near one and the result a normal number.
  return std::bit_cast<double>(std::bit_cast<std::int64_t>(p) +
                               to_integer(k) * (std::int64_t{1} << 52));
}

/// Natural logarithm of a positive normal number, about to the last bit.
LHTREE_INLINED double log(double x) {
  constexpr double ln2_high = 6.93147180369123816490e-01;
  constexpr double ln2_low = 1.90821492927058770002e-10;
  constexpr double one_over_odd[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                     1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  const auto bits = std::bit_cast<std::int64_t>(x);
  const std::int64_t exponent = (bits >> 52) - 1022;  // x = m * 2**exponent, 1/2 <= m < 1
  const auto half = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFF) | 0x3FE0000000000000);
  const bool is_low = half * half < 0.5;
  const double m = is_low ? half * 2.0 : half;
  const double k = to_double(exponent - is_low);
  const double s = (m - 1.0) / (m + 1.0);
  const double p = evaluate(s * s, one_over_odd, std::make_index_sequence<10>());
  return k * ln2_high + (2.0 * s * p + k * ln2_low);
}

}  // namespace lhtree::base
