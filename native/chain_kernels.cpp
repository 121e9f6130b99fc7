#include "chain_kernels.hpp"

#include <algorithm>
#include <limits>

namespace lhtree {
namespace {

#if defined(__GNUC__) || defined(__clang__)
#define LHTREE_UNROLL _Pragma("GCC unroll 8")
#else
#define LHTREE_UNROLL
#endif

constexpr float infinity = std::numeric_limits<float>::infinity();

template <int n_rows>
LHTREE_INLINE void guess_gaps(const Chain& chain, const float* const* row, float* gap) {
  Floats sum[n_rows];
  for (int i = 0; i < n_rows; ++i) sum[i] = fill_floats(0.0f);
  for (std::int64_t begin = 0, end; begin < chain.n_columns; begin = end) {
    end = std::min(begin + Chain::columns_per_sum, chain.n_columns);
    Floats part[n_rows];
    for (int i = 0; i < n_rows; ++i) part[i] = fill_floats(0.0f);
    for (std::int64_t j = begin; j < end; ++j) {
      const Floats weight = load_floats(chain.weight + j * Chain::most);
      for (int i = 0; i < n_rows; ++i) part[i] = part[i] + weight * fill_floats(row[i][j]);
    }
    for (int i = 0; i < n_rows; ++i) sum[i] = sum[i] + part[i];
  }
  const Floats threshold = load_floats(chain.threshold);
  for (int i = 0; i < n_rows; ++i) store(gap + i * Chain::most, sum[i] - threshold);
}

}  // namespace

LHTREE_CLONES void guess_gaps(const Chain& chain, const float* values, const std::int32_t* row,
                              std::int64_t n_rows, float* gap) {
  constexpr int tile = 8;
  constexpr std::int64_t ahead = 16;  // rows between asking for one and reading it
  const auto find = [=, width = chain.n_columns](std::int64_t i) {
    return values + row[i] * width;
  };
  std::int64_t i = 0;
  for (; i + tile <= n_rows; i += tile) {
    for (std::int64_t k = i + ahead; k < std::min(i + ahead + tile, n_rows); ++k)
      prefetch(find(k), chain.n_columns);
    const float* place[tile];
    for (int k = 0; k < tile; ++k) place[k] = find(i + k);
    guess_gaps<tile>(chain, place, gap + i * Chain::most);
  }
  for (; i < n_rows; ++i) {
    const float* place = find(i);
    guess_gaps<1>(chain, &place, gap + i * Chain::most);
  }
}

// Without branches and with pointers that do not overlap, compilers take several rows at once.
LHTREE_CLONES void find_passages(const Chain& chain, const float* __restrict gap,
                                 const float* __restrict error, std::int64_t n_rows,
                                 Passage* __restrict passage) {
  const Chain splits = chain;
  for (std::int64_t i = 0; i < n_rows; ++i) {
    float exit = Chain::most, nearest = 0.0f, first = infinity, second = infinity, any = infinity;
    LHTREE_UNROLL
    for (int v = 0; v < Chain::most; ++v) {
      const float value = gap[i * Chain::most + v], size = value < 0.0f ? -value : value;
      const float met = exit < static_cast<float>(v) ? infinity : size;
      const float leaves = value < 0.0f ? splits.if_below[v] : splits.if_not[v];
      const float farther = met < first ? first : met;
      exit = leaves < exit ? leaves : exit;
      second = farther < second ? farther : second;
      nearest = met < first ? static_cast<float>(v) : nearest;
      first = met < first ? met : first;
      any = size < any ? size : any;
    }
    passage[i] = {any > error[i] ? exit : -1.0f, nearest, first, second};
  }
}

}  // namespace lhtree
