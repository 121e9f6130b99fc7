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

  /// The number as a double, rounded once; it must not be negative.
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
  constexpr std::uint64_t mask = 0xFFFFFFFFu;
  const std::uint64_t al = a & mask, ah = a >> 32, bl = b & mask, bh = b >> 32;
  const std::uint64_t low = al * bl, middle = ah * bl + (low >> 32);
  const std::uint64_t cross = al * bh + (middle & mask);
  return {cross << 32 | (low & mask), ah * bh + (middle >> 32) + (cross >> 32)};
}

}  // namespace lhtree::base
