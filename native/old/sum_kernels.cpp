#include "sum_kernels.hpp"

#include <algorithm>

namespace lhtree {
namespace {

constexpr std::int64_t rows_per_block = 32;  // row pointers that stay in registers and L1

/// Find the rows of a block and their weights; returns how many there are.
template <class T, bool is_weighted>
LHTREE_INLINE std::int64_t find_block(const Table<T>& table, RowSet rows, std::int64_t begin,
                                      const T** row, double* weight) {
  const std::int64_t n = std::min(rows_per_block, rows.size - begin);
  for (std::int64_t i = 0; i < n; ++i) {
    row[i] = table.row(rows.row[begin + i]);
    if constexpr (is_weighted) weight[i] = rows.weight[rows.row[begin + i]];
  }
  return n;
}

/// Sums of sixteen columns over one block of rows, kept in registers. Those of as many rows of
/// the next block are asked for meanwhile, if there is one.
template <class T, bool is_weighted>
LHTREE_INLINE void add_columns(const T* const* row, const T* const* next, const double* weight,
                               std::int64_t n_rows, std::int64_t column, const double* origin,
                               double* sum, double* square) {
  const Lanes origin0 = load(origin + column), origin1 = load(origin + column + lane_count);
  Lanes sum0 = load(sum + column), sum1 = load(sum + column + lane_count);
  Lanes square0 = load(square + column), square1 = load(square + column + lane_count);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    if (next) prefetch(next[i] + column, 2 * lane_count);
    const Lanes x0 = load(row[i] + column) - origin0;
    const Lanes x1 = load(row[i] + column + lane_count) - origin1;
    const Lanes wx0 = is_weighted ? fill(weight[i]) * x0 : x0;
    const Lanes wx1 = is_weighted ? fill(weight[i]) * x1 : x1;
    sum0 = sum0 + wx0;
    sum1 = sum1 + wx1;
    square0 = square0 + wx0 * x0;
    square1 = square1 + wx1 * x1;
  }
  store(sum + column, sum0);
  store(sum + column + lane_count, sum1);
  store(square + column, square0);
  store(square + column + lane_count, square1);
}

template <class T, bool is_weighted>
LHTREE_INLINE void add_lane(const T* const* row, const T* const* next, const double* weight,
                            std::int64_t n_rows, std::int64_t column, const double* origin,
                            double* sum, double* square) {
  const Lanes origin0 = load(origin + column);
  Lanes sum0 = load(sum + column), square0 = load(square + column);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    if (next) prefetch(next[i] + column, lane_count);
    const Lanes x0 = load(row[i] + column) - origin0;
    const Lanes wx0 = is_weighted ? fill(weight[i]) * x0 : x0;
    sum0 = sum0 + wx0;
    square0 = square0 + wx0 * x0;
  }
  store(sum + column, sum0);
  store(square + column, square0);
}

template <class T, bool is_weighted>
LHTREE_INLINE void add_all(const Table<T>& table, RowSet rows, const double* origin, double* sum,
                           double* square) {
  constexpr std::int64_t near = 1 << 20;  // bytes that a fast cache holds
  const bool is_far = table.n_rows * table.width * std::int64_t{sizeof(T)} > near;
  const T* row[2][rows_per_block];
  double weight[2][rows_per_block];
  std::int64_t n = find_block<T, is_weighted>(table, rows, 0, row[0], weight[0]);
  for (std::int64_t begin = 0, k = 0; n > 0; k = 1 - k) {
    const std::int64_t n_next =
        find_block<T, is_weighted>(table, rows, begin + n, row[1 - k], weight[1 - k]);
    const T* const* next = is_far && n_next == n ? row[1 - k] : nullptr;
    std::int64_t column = 0;
    for (; column + 2 * lane_count <= table.width; column += 2 * lane_count)
      add_columns<T, is_weighted>(row[k], next, weight[k], n, column, origin, sum, square);
    if (column < table.width)
      add_lane<T, is_weighted>(row[k], next, weight[k], n, column, origin, sum, square);
    begin += n;
    n = n_next;
  }
}

template <class T>
LHTREE_INLINE void add(const Table<T>& table, RowSet rows, const double* origin, double* sum,
                       double* square) {
  if (rows.weight)
    add_all<T, true>(table, rows, origin, sum, square);
  else
    add_all<T, false>(table, rows, origin, sum, square);
}

/// Sums of eight columns over one block of rows, without the missing values.
template <class T, bool is_weighted>
LHTREE_INLINE void add_present_lane(const T* const* row, const double* weight, std::int64_t n_rows,
                                    std::int64_t column, const double* origin, double* sum,
                                    double* square, double* present) {
  const Lanes origin0 = load(origin + column);
  Lanes sum0 = load(sum + column), square0 = load(square + column);
  Lanes present0 = load(present + column);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const Lanes value = load(row[i] + column);
    const Lanes x0 = fill_missing(value, origin0) - origin0;
    const Lanes wx0 = is_weighted ? fill(weight[i]) * x0 : x0;
    sum0 = sum0 + wx0;
    square0 = square0 + wx0 * x0;
    present0 = present0 + fill_present(value, is_weighted ? weight[i] : 1.0);
  }
  store(sum + column, sum0);
  store(square + column, square0);
  store(present + column, present0);
}

template <class T, bool is_weighted>
LHTREE_INLINE void add_all_present(const Table<T>& table, RowSet rows, const double* origin,
                                   double* sum, double* square, double* present) {
  const T* row[rows_per_block];
  double weight[rows_per_block];
  for (std::int64_t begin = 0; begin < rows.size; begin += rows_per_block) {
    const std::int64_t n = find_block<T, is_weighted>(table, rows, begin, row, weight);
    for (std::int64_t column = 0; column < table.width; column += lane_count)
      add_present_lane<T, is_weighted>(row, weight, n, column, origin, sum, square, present);
  }
}

template <class T>
LHTREE_INLINE void add_present(const Table<T>& table, RowSet rows, const double* origin,
                               double* sum, double* square, double* present) {
  if (rows.weight)
    add_all_present<T, true>(table, rows, origin, sum, square, present);
  else
    add_all_present<T, false>(table, rows, origin, sum, square, present);
}

template <class T, bool takes_out>
LHTREE_INLINE void add_to_groups(const T* const* row, const T* const* next,
                                 const std::uint32_t* group, std::int64_t n, std::int64_t width,
                                 const double* origin, double* sums) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (next) prefetch(next[i], width);
    double* sum = sums + 2 * width * group[i];
    double* square = sum + width;
    for (std::int64_t j = 0; j < width; j += lane_count) {
      const Lanes x = load(row[i] + j) - load(origin + j);
      if constexpr (takes_out) {
        store(sum + j, load(sum + j) - x);
        store(square + j, load(square + j) - x * x);
      } else {
        store(sum + j, load(sum + j) + x);
        store(square + j, load(square + j) + x * x);
      }
    }
  }
}

template <class T>
LHTREE_INLINE void add_any_grouped(const T* const* row, const T* const* next,
                                   const std::uint32_t* group, std::int64_t n, std::int64_t width,
                                   const double* origin, bool takes_out, double* sums) {
  if (takes_out)
    add_to_groups<T, true>(row, next, group, n, width, origin, sums);
  else
    add_to_groups<T, false>(row, next, group, n, width, origin, sums);
}

}  // namespace

LHTREE_CLONES void add_rows(const Table<double>& table, RowSet rows, const double* origin,
                            double* sum, double* square) {
  add(table, rows, origin, sum, square);
}

LHTREE_CLONES void add_rows(const Table<float>& table, RowSet rows, const double* origin,
                            double* sum, double* square) {
  add(table, rows, origin, sum, square);
}

LHTREE_CLONES void add_present_rows(const Table<double>& table, RowSet rows, const double* origin,
                                    double* sum, double* square, double* present) {
  add_present(table, rows, origin, sum, square, present);
}

LHTREE_CLONES void add_present_rows(const Table<float>& table, RowSet rows, const double* origin,
                                    double* sum, double* square, double* present) {
  add_present(table, rows, origin, sum, square, present);
}

LHTREE_CLONES void add_grouped(const double* const* row, const double* const* next,
                               const std::uint32_t* group, std::int64_t n, std::int64_t width,
                               const double* origin, bool takes_out, double* sums) {
  add_any_grouped(row, next, group, n, width, origin, takes_out, sums);
}

LHTREE_CLONES void add_grouped(const float* const* row, const float* const* next,
                               const std::uint32_t* group, std::int64_t n, std::int64_t width,
                               const double* origin, bool takes_out, double* sums) {
  add_any_grouped(row, next, group, n, width, origin, takes_out, sums);
}

LHTREE_CLONES double add_values(const double* value, const double* weight, std::int64_t n,
                                double origin, double& square) {
  const Lanes shift = fill(origin);
  Lanes sum = fill(0.0), squares = fill(0.0);
  std::int64_t i = 0;
  for (; i + lane_count <= n; i += lane_count) {
    const Lanes x = load(value + i) - shift;
    const Lanes wx = weight ? load(weight + i) * x : x;
    sum = sum + wx;
    squares = squares + wx * x;
  }
  double total = combine(sum), total_square = combine(squares);
  for (; i < n; ++i) {
    const double x = value[i] - origin, wx = weight ? weight[i] * x : x;
    total += wx;
    total_square += wx * x;
  }
  square += total_square;
  return total;
}

LHTREE_CLONES void multiply_columns(const double* const* a, const double* const* b, std::int64_t p,
                                    std::int64_t n, double* product) {
  for (std::int64_t i = 0; i < p; i += 2)
    for (std::int64_t j = 0; j <= i; j += 2) {
      // Two columns by two: four products from four loads. A last odd column is doubled.
      const std::int64_t i1 = i + 1 < p ? i + 1 : i, j1 = j + 1 < p ? j + 1 : j;
      Lanes sum00 = fill(0.0), sum01 = fill(0.0), sum10 = fill(0.0), sum11 = fill(0.0);
      for (std::int64_t k = 0; k < n; k += lane_count) {
        const Lanes a0 = load(a[i] + k), a1 = load(a[i1] + k);
        const Lanes b0 = load(b[j] + k), b1 = load(b[j1] + k);
        sum00 = sum00 + a0 * b0;
        sum01 = sum01 + a0 * b1;
        sum10 = sum10 + a1 * b0;
        sum11 = sum11 + a1 * b1;
      }
      product[i * p + j] += combine(sum00);
      if (j1 > j && j1 <= i) product[i * p + j1] += combine(sum01);
      if (i1 > i) product[i1 * p + j] += combine(sum10);
      if (i1 > i && j1 > j) product[i1 * p + j1] += combine(sum11);
    }
}

}  // namespace lhtree
