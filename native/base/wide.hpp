// Integers of 128 bits, modulo 2**128, on every compiler.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace lhtree::base {

struct Wide {
  std::uint64_t low = 0, high = 0;

  Wide operator+(const Wide& other) const {
    const std::uint64_t sum = low + other.low;
    return {sum, high + other.high + (sum < low)};
  }
  Wide operator-(const Wide& other) const {
    return {low - other.low, high - other.high - (low < other.low)};
  }
  Wide& operator+=(const Wide& other) { return *this = *this + other; }
  bool operator<(const Wide& other) const {
    return high != other.high ? high < other.high : low < other.low;
  }

  /// The number as a double, rounded once.
  double to_double() const {
    if (high == 0) return static_cast<double>(low);
    const int shift = std::bit_width(high);  // bits that are left out, but for whether any is set
    const std::uint64_t lost = shift == 64 ? low : low & ((std::uint64_t{1} << shift) - 1);
    const std::uint64_t kept = shift == 64 ? high : high << (64 - shift) | low >> shift;
    return std::ldexp(static_cast<double>(kept | (lost != 0)), shift);
  }
};

/// The product of two words.
inline Wide multiply(std::uint64_t a, std::uint64_t b) {
#if defined(__SIZEOF_INT128__)
  __extension__ using Word = unsigned __int128;
  const Word product = Word{a} * b;
  return {static_cast<std::uint64_t>(product), static_cast<std::uint64_t>(product >> 64)};
#else
  constexpr std::uint64_t mask = 0xFFFFFFFFu;
  const std::uint64_t al = a & mask, ah = a >> 32, bl = b & mask, bh = b >> 32;
  const std::uint64_t low = al * bl, middle = ah * bl + (low >> 32);
  const std::uint64_t cross = al * bh + (middle & mask);
  return {cross << 32 | (low & mask), ah * bh + (middle >> 32) + (cross >> 32)};
#endif
}

inline Wide multiply(const Wide& a, std::uint64_t b) {
  Wide product = multiply(a.low, b);
  product.high += a.high * b;
  return product;
}

/// The quotient, rounded down; it must fit a word.
inline std::uint64_t divide(const Wide& a, std::uint64_t b) {
  std::uint64_t quotient = 0, rest = a.high % b;
  for (int bit = 63; bit >= 0; --bit) {
    const bool carries = rest >> 63;
    rest = rest << 1 | (a.low >> bit & 1);
    const bool fits = carries || rest >= b;
    rest -= fits ? b : 0;
    quotient |= std::uint64_t{fits} << bit;
  }
  return quotient;
}

}  // namespace lhtree::base
