// Sorting doubles by their bits: the order of the numbers, in few passes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "old/pages.hpp"
#include "old/stop.hpp"

namespace lhtree::base {

/// Bits whose order as integers is that of the numbers; both zeros have the same.
inline std::uint64_t to_key(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x + 0.0);
  return bits >> 63 ? ~bits : bits | std::uint64_t{1} << 63;
}

inline double from_key(std::uint64_t key) {
  return std::bit_cast<double>(key >> 63 ? key & ~(std::uint64_t{1} << 63) : ~key);
}

/// Sort keys; `spare` is as long; ends early once `stop` is set. Passes whose digit is the same for
/// all are left out.
inline void sort_keys(PageVector<std::uint64_t>& key, PageVector<std::uint64_t>& spare,
                      const StopFlag& stop) {
  constexpr int bits = 11, n_digits = (64 + bits - 1) / bits, n_slots = 1 << bits;
  spare.resize(key.size());
  std::vector<std::array<std::uint32_t, n_slots>> count(n_digits);
  for (auto& each : count) each.fill(0);
  for (const std::uint64_t value : key)
    for (int digit = 0; digit < n_digits; ++digit)
      ++count[digit][value >> (digit * bits) & (n_slots - 1)];
  for (int digit = 0; digit < n_digits && !stop; ++digit) {
    auto& place = count[digit];
    const int shift = digit * bits;
    if (key.empty() || place[key[0] >> shift & (n_slots - 1)] == key.size()) continue;
    std::uint32_t next = 0;
    for (std::uint32_t& each : place) next += std::exchange(each, next);
    for (const std::uint64_t value : key) spare[place[value >> shift & (n_slots - 1)]++] = value;
    key.swap(spare);
  }
}

}  // namespace lhtree::base
