// Counter-based draws: a value depends on a key and a counter, never on what was
// drawn before. Threads, partitions and warm starts therefore see the same draws.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "pages.hpp"
#include "stop.hpp"

namespace lhtree {

/// The `counter`-th output of the splitmix64 generator that starts at `key`.
inline std::uint64_t hash64(std::uint64_t key, std::uint64_t counter) {
  std::uint64_t z = key + (counter + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

// Keys of trees and nodes use complemented counters, which no row or column reaches.
inline std::uint64_t member_key(std::uint64_t seed, std::uint64_t member) {
  return hash64(seed, member);
}
inline std::uint64_t tree_key(std::uint64_t member_key, std::uint64_t target) {
  return hash64(member_key, ~target);
}
inline std::uint64_t child_key(std::uint64_t node_key, bool is_right) {
  return hash64(node_key, ~static_cast<std::uint64_t>(is_right));
}
/// Key of the columns that a node draws.
inline std::uint64_t draw_key(std::uint64_t node_key) {
  return hash64(node_key, ~std::uint64_t{2});
}

/// The rows of one member, ascending, and how often each was drawn.
struct Draw {
  PageVector<std::uint32_t> row;
  PageVector<std::uint32_t> multiplicity;  // empty: every row once
};

/// Which rows have the smallest hashes: those below `hash`, and of those that equal it the
/// rows before `row`.
struct DrawLimit {
  std::uint64_t hash;
  std::uint32_t row;

  bool includes(std::uint64_t value, std::uint32_t number) const {
    return value < hash || (value == hash && number < row);
  }
};

/// The limit of the `n_draws` < `n_rows` smallest hashes; on equal hashes the lower row.
///
/// Hashes are counted by their leading bits; only those at the limit are kept and sorted. Of few
/// rows, few bits do, and take little memory.
inline DrawLimit find_draw_limit(std::uint64_t key, std::uint32_t n_rows, std::uint32_t n_draws,
                                 const StopFlag& stop) {
  const int n_bits = std::clamp(static_cast<int>(std::bit_width(n_rows)) - 6, 1, 16);
  const int shift = 64 - n_bits;
  std::vector<std::uint32_t> count(std::size_t{1} << n_bits, 0);
  const auto visit = [&](const auto& look) {
    for (std::uint32_t row = 0; row < n_rows; ++row) {
      if (row % (1u << 20) == 0) check_stop(stop);
      look(hash64(key, row), row);
    }
  };
  visit([&](std::uint64_t value, std::uint32_t) { ++count[value >> shift]; });
  std::size_t bin = 0;
  std::uint32_t n_left = n_draws;  // to be drawn from this bin on
  for (; count[bin] <= n_left; ++bin) n_left -= count[bin];
  std::vector<std::pair<std::uint64_t, std::uint32_t>> near;
  near.reserve(count[bin]);
  visit([&](std::uint64_t value, std::uint32_t row) {
    if (value >> shift == bin) near.push_back({value, row});
  });
  std::sort(near.begin(), near.end());
  return {near[n_left].first, near[n_left].second};
}

/// The `n_draws` rows with the smallest hash; on equal hashes the lower row.
inline Draw draw_without_replacement(std::uint64_t key, std::uint32_t n_rows, std::uint32_t n_draws,
                                     PageVector<std::uint32_t> room, const StopFlag& stop) {
  Draw draw{std::move(room), {}};
  draw.row.clear();
  if (n_draws >= n_rows) {
    draw.row.resize(n_rows);
    std::iota(draw.row.begin(), draw.row.end(), 0u);
    return draw;
  }
  const DrawLimit limit = find_draw_limit(key, n_rows, n_draws, stop);
  draw.row.reserve(n_draws);
  for (std::uint32_t row = 0; row < n_rows; ++row) {
    if (row % (1u << 20) == 0) check_stop(stop);
    if (limit.includes(hash64(key, row), row)) draw.row.push_back(row);
  }
  return draw;
}

/// Draw j is row hash(j) mod n.
inline Draw draw_with_replacement(std::uint64_t key, std::uint32_t n_rows, std::uint32_t n_draws,
                                  PageVector<std::uint32_t> room, const StopFlag& stop) {
  PageVector<std::uint32_t> count(n_rows, 0);
  for (std::uint32_t j = 0; j < n_draws; ++j) {
    if (j % (1u << 20) == 0) check_stop(stop);
    ++count[hash64(key, j) % n_rows];
  }
  Draw draw{std::move(room), {}};
  draw.row.clear();
  for (std::uint32_t row = 0; row < n_rows; ++row) {
    if (count[row] == 0) continue;
    draw.row.push_back(row);
    draw.multiplicity.push_back(count[row]);
  }
  return draw;
}

/// The rows of a member; the memory of `room` is used.
inline Draw draw_rows(std::uint64_t seed, std::uint64_t member, std::uint32_t n_rows,
                      std::uint32_t n_draws, bool bootstrap, PageVector<std::uint32_t> room,
                      const StopFlag& stop) {
  const std::uint64_t key = member_key(seed, member);
  return bootstrap ? draw_with_replacement(key, n_rows, n_draws, std::move(room), stop)
                   : draw_without_replacement(key, n_rows, n_draws, std::move(room), stop);
}

/// Order the columns by their hash under `key`, lower column first on equality.
inline void shuffle_columns(std::uint64_t key, std::vector<std::int32_t>& column) {
  std::sort(column.begin(), column.end(), [key](std::int32_t a, std::int32_t b) {
    return std::pair(hash64(key, static_cast<std::uint64_t>(a)), a) <
           std::pair(hash64(key, static_cast<std::uint64_t>(b)), b);
  });
}

}  // namespace lhtree
