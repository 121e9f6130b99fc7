// exp and log by + - * / alone: libraries differ in the last bit, these sequences do not.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace lhtree::base {

/// floor(x + 1/2), the one way in which reals become integers.
inline double round_up(double x) { return std::floor(x + 0.5); }

/// An integer below 2**51 as a double, by additions alone, which compilers vectorise.
inline double to_double(std::int64_t x) {
  constexpr double magic = 0x1.8p52;
  return std::bit_cast<double>(std::bit_cast<std::int64_t>(magic) + x) - magic;
}

/// A double that holds an integer below 2**51, likewise.
inline std::int64_t to_integer(double x) {
  constexpr double magic = 0x1.8p52;
  return std::bit_cast<std::int64_t>(x + magic) - std::bit_cast<std::int64_t>(magic);
}

/// e**x, about to the last bit; clipped beyond 700.
inline double exp(double x) {
  constexpr double ln2_high = 6.93147180369123816490e-01;  // exact times an exponent
  constexpr double ln2_low = 1.90821492927058770002e-10;
  constexpr double log2_e = 1.44269504088896340736;
  // 1 / n! for n = 13 ... 0
  constexpr double term[] = {1.0 / 6227020800.0,
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
  x = std::clamp(x, -700.0, 700.0);
  const double k = std::floor(x * log2_e + 0.5);
  const double r = (x - k * ln2_high) - k * ln2_low;
  double p = term[0];
  for (int n = 1; n < 14; ++n) p = p * r + term[n];
  // 2**k goes into the exponent: p is near one and the result a normal number.
  return std::bit_cast<double>(std::bit_cast<std::int64_t>(p) +
                               to_integer(k) * (std::int64_t{1} << 52));
}

/// Natural logarithm of a positive normal number, about to the last bit.
inline double log(double x) {
  constexpr double ln2_high = 6.93147180369123816490e-01;
  constexpr double ln2_low = 1.90821492927058770002e-10;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m * m < 0.5) {
    m *= 2.0;
    --exponent;
  }
  const double k = exponent, s = (m - 1.0) / (m + 1.0), t = s * s;
  double p = 1.0 / 21.0;
  for (int n = 19; n > 0; n -= 2) p = p * t + 1.0 / n;
  return k * ln2_high + (2.0 * s * p + k * ln2_low);
}

}  // namespace lhtree::base
