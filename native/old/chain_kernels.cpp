#include "chain_kernels.hpp"

#include <algorithm>
#include <limits>

namespace lhtree {
namespace {

// Unrolled, what loops over splits hold stays in registers.
#if defined(__GNUC__) || defined(__clang__)
#define LHTREE_UNROLL _Pragma("GCC unroll 8")
#else
#define LHTREE_UNROLL
#endif

constexpr float infinity = std::numeric_limits<float>::infinity();

/// gap[v] = distances of several rows from the hyperplane of split v.
LHTREE_INLINE void guess_gaps(const Chain& chain, const float* const* row,
                              Floats (&gap)[Chain::most]) {
  for (Floats& sum : gap) sum = fill_floats(0.0f);
  for (std::int64_t begin = 0, end; begin < chain.n_columns; begin = end) {
    end = std::min(begin + Chain::columns_per_sum, chain.n_columns);
    Floats part[Passages::tile];
    for (Floats& sum : part) sum = fill_floats(0.0f);
    for (std::int64_t j = begin; j < end; ++j) {
      const Floats weight = load_floats(chain.weight + j * Chain::most);
      for (int i = 0; i < Passages::tile; ++i) part[i] = part[i] + weight * fill_floats(row[i][j]);
    }
    for (int i = 0; i < Passages::tile; ++i) gap[i] = gap[i] + part[i];
  }
  transpose(gap);
  LHTREE_UNROLL
  for (int v = 0; v < Chain::most; ++v) gap[v] = gap[v] - fill_floats(chain.threshold[v]);
}

/// Passages of several rows.
struct Tile {
  Floats exit, nearest, first, second;
};

/// What the gaps of several rows say. A row is not sure if one that it meets is no larger than
/// its error: if all are larger, their signs are right, and so is where it leaves.
LHTREE_INLINE Tile read_gaps(const Chain& chain, const Floats (&gap)[Chain::most],
                             const Floats& error) {
  const Floats zero = fill_floats(0.0f), far = fill_floats(infinity);
  Tile tile{fill_floats(Chain::most), zero, far, far};
  LHTREE_UNROLL
  for (int v = 0; v < Chain::most; ++v) {
    const Floats number = fill_floats(static_cast<float>(v));
    const Floats size = find_max(gap[v], zero - gap[v]);
    const Floats met = choose_below(tile.exit, number, far, size);
    const Floats leaves =
        choose_below(gap[v], zero, fill_floats(chain.if_below[v]), fill_floats(chain.if_not[v]));
    tile.exit = find_min(leaves, tile.exit);
    tile.second = find_min(find_max(met, tile.first), tile.second);
    tile.nearest = choose_below(met, tile.first, number, tile.nearest);
    tile.first = find_min(met, tile.first);
  }
  tile.exit = choose_below(error, tile.first, tile.exit, fill_floats(-1.0f));
  return tile;
}

}  // namespace

LHTREE_CLONES void guess_passages(const Chain& chain, const float* values, const float* error,
                                  const std::int32_t* row, std::int64_t n_rows, Passages passages) {
  for (std::int64_t begin = 0; begin < n_rows; begin += Passages::tile) {
    const float* place[Passages::tile];
    float errors[Passages::tile];
    for (int i = 0; i < Passages::tile; ++i) {
      const std::int64_t number = row[std::min(begin + i, n_rows - 1)];  // the last one repeats
      place[i] = values + number * chain.n_columns;
      errors[i] = error[number];
    }
    Floats gap[Chain::most];
    guess_gaps(chain, place, gap);
    const Tile tile = read_gaps(chain, gap, load_floats(errors));
    store(passages.exit + begin, tile.exit);
    store(passages.nearest + begin, tile.nearest);
    store(passages.first + begin, tile.first);
    store(passages.second + begin, tile.second);
  }
}

LHTREE_CLONES void guess_gaps(const Chain& chain, const float* row, float* gap) {
  Floats sum = fill_floats(0.0f);
  for (std::int64_t begin = 0, end; begin < chain.n_columns; begin = end) {
    end = std::min(begin + Chain::columns_per_sum, chain.n_columns);
    Floats part = fill_floats(0.0f);
    for (std::int64_t j = begin; j < end; ++j)
      part = part + load_floats(chain.weight + j * Chain::most) * fill_floats(row[j]);
    sum = sum + part;
  }
  store(gap, sum - load_floats(chain.threshold));
}

LHTREE_CLONES Passage find_passage(const Chain& chain, const float* gap) {
  Floats gaps[Chain::most];
  for (int v = 0; v < Chain::most; ++v) gaps[v] = fill_floats(gap[v]);
  const Tile tile = read_gaps(chain, gaps, fill_floats(-1.0f));
  float part[4][Passages::tile];
  store(part[0], tile.exit);
  store(part[1], tile.nearest);
  store(part[2], tile.first);
  store(part[3], tile.second);
  return {part[0][0], part[1][0], part[2][0], part[3][0]};
}

}  // namespace lhtree
