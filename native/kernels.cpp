#include "kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lhtree {
namespace {

constexpr std::int64_t rows_per_block = 32;  // row pointers that stay in registers and L1

// ---- sums ------------------------------------------------------------------

/// Sums of sixteen columns over one block of rows, kept in registers.
template <class T, bool is_weighted>
LHTREE_INLINE void add_columns(const T* const* row, const double* weight, std::int64_t n_rows,
                               std::int64_t column, const double* origin, double* sum,
                               double* square) {
  const Lanes origin0 = load(origin + column), origin1 = load(origin + column + lane_count);
  Lanes sum0 = load(sum + column), sum1 = load(sum + column + lane_count);
  Lanes square0 = load(square + column), square1 = load(square + column + lane_count);
  for (std::int64_t i = 0; i < n_rows; ++i) {
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
LHTREE_INLINE void add_lane(const T* const* row, const double* weight, std::int64_t n_rows,
                            std::int64_t column, const double* origin, double* sum,
                            double* square) {
  const Lanes origin0 = load(origin + column);
  Lanes sum0 = load(sum + column), square0 = load(square + column);
  for (std::int64_t i = 0; i < n_rows; ++i) {
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
  const T* row[rows_per_block];
  double weight[rows_per_block];
  for (std::int64_t begin = 0; begin < rows.size; begin += rows_per_block) {
    const std::int64_t n = std::min(rows_per_block, rows.size - begin);
    for (std::int64_t i = 0; i < n; ++i) {
      row[i] = table.row(rows.row[begin + i]);
      if constexpr (is_weighted) weight[i] = rows.weight[rows.row[begin + i]];
    }
    std::int64_t column = 0;
    for (; column + 2 * lane_count <= table.width; column += 2 * lane_count)
      add_columns<T, is_weighted>(row, weight, n, column, origin, sum, square);
    if (column < table.width) add_lane<T, is_weighted>(row, weight, n, column, origin, sum, square);
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
    const std::int64_t n = std::min(rows_per_block, rows.size - begin);
    for (std::int64_t i = 0; i < n; ++i) {
      row[i] = table.row(rows.row[begin + i]);
      if constexpr (is_weighted) weight[i] = rows.weight[rows.row[begin + i]];
    }
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

// ---- projections -----------------------------------------------------------

/// The last, incomplete lane of weights or centers; zeros cancel what lies past a row.
LHTREE_INLINE Lanes load_last(FormView form, const double* values, std::int64_t column) {
  if (form.is_padded) return load(values + column);
  Lanes lanes = fill(0.0);
  for (std::int64_t i = 0; column + i < form.n_terms; ++i) lanes.set(i, values[column + i]);
  return lanes;
}

/// A row whose missing values are replaced by the centers.
template <class T>
LHTREE_INLINE double project_dense_filled(const T* row, FormView form, Lanes last,
                                          Lanes last_center) {
  Lanes sum = fill(0.0);
  const std::int64_t n_whole = form.n_terms / lane_count * lane_count;
  for (std::int64_t column = 0; column < n_whole; column += lane_count)
    sum = sum +
          load(form.weight + column) * fill_missing(load(row + column), load(form.center + column));
  if (n_whole < form.n_terms) sum = sum + last * fill_missing(load(row + n_whole), last_center);
  return combine(sum);
}

template <class T>
LHTREE_INLINE double project_sparse_filled(const T* row, FormView form) {
  Lanes sum = fill(0.0);
  for (std::int64_t k = 0; k < form.n_terms; ++k) {
    const std::int32_t j = form.feature[k];
    const auto value = static_cast<double>(row[j]);
    sum.add(j % lane_count, form.weight[k] * (value == value ? value : form.center[k]));
  }
  return combine(sum);
}

template <class T>
LHTREE_INLINE void project_filled(const T* const* row, std::int64_t n_rows, FormView form,
                                  double* score) {
  if (form.feature) {
    for (std::int64_t i = 0; i < n_rows; ++i) score[i] = project_sparse_filled(row[i], form);
    return;
  }
  Lanes last = fill(0.0), last_center = fill(0.0);
  const std::int64_t n_whole = form.n_terms / lane_count * lane_count;
  if (n_whole < form.n_terms) {
    last = load_last(form, form.weight, n_whole);
    last_center = load_last(form, form.center, n_whole);
  }
  for (std::int64_t i = 0; i < n_rows; ++i)
    score[i] = project_dense_filled(row[i], form, last, last_center);
}

/// Several rows at once hide the latency of the additions.
template <int n_rows, class T>
LHTREE_INLINE void project_dense(const T* const* row, FormView form, Lanes last, double* score) {
  Lanes sum[n_rows];
  for (int i = 0; i < n_rows; ++i) sum[i] = fill(0.0);
  const std::int64_t n_whole = form.n_terms / lane_count * lane_count;
  for (std::int64_t column = 0; column < n_whole; column += lane_count) {
    const Lanes weight = load(form.weight + column);
    for (int i = 0; i < n_rows; ++i) sum[i] = sum[i] + weight * load(row[i] + column);
  }
  if (n_whole < form.n_terms)
    for (int i = 0; i < n_rows; ++i) sum[i] = sum[i] + last * load(row[i] + n_whole);
  for (int i = 0; i < n_rows; ++i) score[i] = combine(sum[i]);
}

/// Several dense forms of one row.
template <int n_forms>
LHTREE_INLINE void project_row(const double* row, const FormView* form, const Lanes* last,
                               std::int32_t place, double* const* score) {
  Lanes sum[n_forms];
  for (int f = 0; f < n_forms; ++f) sum[f] = fill(0.0);
  const std::int64_t n_terms = form[0].n_terms, n_whole = n_terms / lane_count * lane_count;
  for (std::int64_t column = 0; column < n_whole; column += lane_count) {
    const Lanes value = load(row + column);
    for (int f = 0; f < n_forms; ++f) sum[f] = sum[f] + load(form[f].weight + column) * value;
  }
  if (n_whole < n_terms) {
    const Lanes value = load(row + n_whole);
    for (int f = 0; f < n_forms; ++f) sum[f] = sum[f] + last[f] * value;
  }
  for (int f = 0; f < n_forms; ++f) score[f][place] = combine(sum[f]);
}

template <int n_forms>
LHTREE_INLINE void project_forms(const double* const* row, std::int64_t n_rows,
                                 const FormView* form, const std::int32_t* place,
                                 double* const* score) {
  constexpr std::int64_t ahead = 6;  // rows between asking for one and reading it
  const std::int64_t n_terms = form[0].n_terms;
  Lanes last[n_forms];
  for (int f = 0; f < n_forms; ++f)
    last[f] = load_last(form[f], form[f].weight, n_terms / lane_count * lane_count);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    if (i + ahead < n_rows) prefetch(row[i + ahead], n_terms);
    project_row<n_forms>(row[i], form, last, place[i], score);
  }
}

/// Several rows at once share the columns of the terms; the sums of one lane lie side by side.
template <int n_rows, class T>
LHTREE_INLINE void project_sparse(const T* const* row, FormView form, double* score) {
  constexpr int n_parts = n_rows / part_size;
  Part sum[lane_count][n_parts];
  for (auto& lane : sum)
    for (Part& part : lane) part = fill(0.0).part[0];
  for (std::int64_t k = 0; k < form.n_terms; ++k) {
    const auto j = static_cast<std::uint32_t>(form.feature[k]);
    const Part weight = fill(form.weight[k]).part[0];
    Part* lane = sum[j % lane_count];
    for (int p = 0; p < n_parts; ++p) {
      Part value;
      for (int i = 0; i < part_size; ++i) value[i] = static_cast<double>(row[p * part_size + i][j]);
      lane[p] = lane[p] + weight * value;
    }
  }
  for (int p = 0; p < n_parts; ++p) {
    const Part even = (sum[0][p] + sum[4][p]) + (sum[2][p] + sum[6][p]);
    const Part odd = (sum[1][p] + sum[5][p]) + (sum[3][p] + sum[7][p]);
    const Part total = even + odd;
    std::memcpy(score + p * part_size, &total, sizeof total);
  }
}

template <class T>
LHTREE_INLINE double project_sparse(const T* row, FormView form) {
  Lanes sum = fill(0.0);
  for (std::int64_t k = 0; k < form.n_terms; ++k) {
    const auto j = static_cast<std::uint32_t>(form.feature[k]);
    sum.add(j % lane_count, form.weight[k] * static_cast<double>(row[j]));
  }
  return combine(sum);
}

template <class T>
LHTREE_INLINE void project_all(const T* const* row, std::int64_t n_rows, FormView form, Place place,
                               double* score) {
  if (form.center) return project_filled(row, n_rows, form, score);
  std::int64_t i = 0;
  if (form.feature && form.n_terms == 1) {  // zeros in the other sums change no bit but a sign
    const std::int32_t j = form.feature[0];
    for (; i < n_rows; ++i) score[i] = form.weight[0] * static_cast<double>(row[i][j]) + 0.0;
    return;
  }
  if (form.feature) {
    for (; i + 8 <= n_rows; i += 8) project_sparse<8>(row + i, form, score + i);
    if (i + 4 <= n_rows) {
      project_sparse<4>(row + i, form, score + i);
      i += 4;
    }
    for (; i < n_rows; ++i) score[i] = project_sparse(row[i], form);
    return;
  }
  Lanes last = fill(0.0);
  if (form.n_terms % lane_count)
    last = load_last(form, form.weight, form.n_terms / lane_count * lane_count);
  for (; i + 4 <= n_rows; i += 4) {
    if (place == Place::scattered)
      for (std::int64_t k = i + 8; k < std::min(i + 12, n_rows); ++k)
        prefetch(row[k], form.n_terms);
    project_dense<4>(row + i, form, last, score + i);
  }
  if (i + 2 <= n_rows) {
    project_dense<2>(row + i, form, last, score + i);
    i += 2;
  }
  if (i < n_rows) project_dense<1>(row + i, form, last, score + i);
}

/// The length of a row, in single precision and no shorter than it is.
template <class T>
LHTREE_INLINE float measure_row(const T* row, const double* middle, std::int64_t n_columns) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr double rounding = 1.0 + 1e-7;  // also of the sum, up to a billion columns
  Lanes sum = fill(0.0);
  const std::int64_t n_whole = n_columns / lane_count * lane_count;
  for (std::int64_t j = 0; j < n_whole; j += lane_count) {
    const Lanes x = load(row + j) - load(middle + j);
    sum = sum + x * x;
  }
  double square = combine(sum);
  for (std::int64_t j = n_whole; j < n_columns; ++j) {
    const double x = static_cast<double>(row[j]) - middle[j];
    square += x * x;
  }
  return std::nextafter(static_cast<float>(std::sqrt(square) * rounding), infinity);
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

LHTREE_CLONES void project(const double* const* row, std::int64_t n_rows, FormView form,
                           Place place, double* score) {
  project_all(row, n_rows, form, place, score);
}

LHTREE_CLONES void project(const float* const* row, std::int64_t n_rows, FormView form, Place place,
                           double* score) {
  project_all(row, n_rows, form, place, score);
}

LHTREE_CLONES void project_forms(const double* const* row, std::int64_t n_rows,
                                 const FormView* form, int n_forms, const std::int32_t* place,
                                 double* const* score) {
  if (n_forms == 2) project_forms<2>(row, n_rows, form, place, score);
  if (n_forms == 3) project_forms<3>(row, n_rows, form, place, score);
  if (n_forms == 4) project_forms<4>(row, n_rows, form, place, score);
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

LHTREE_CLONES void gather_values(const double* column, const std::uint32_t* row, std::int64_t n,
                                 double* value) {
  for (std::int64_t i = 0; i < n; ++i) value[i] = column[row[i]];
}

LHTREE_CLONES void gather_values(const float* column, const std::uint32_t* row, std::int64_t n,
                                 double* value) {
  for (std::int64_t i = 0; i < n; ++i) value[i] = column[row[i]];
}

LHTREE_CLONES void standardize_values(double* value, std::int64_t n, double center, double unit) {
  for (std::int64_t i = 0; i < n; ++i) value[i] = (value[i] - center) / unit;
}

LHTREE_CLONES void find_purity(const double* target, const double* all, std::int64_t n_bins,
                               double* behind, double* inside) {
  const double whole_target = target[n_bins], whole = all[n_bins];
  // One division instead of two: t^2 / n + u^2 / m = (t^2 m + u^2 n) / (n m).
  const auto purity = [=](double t, double n) {
    const double u = whole_target - t, m = whole - n, product = n * m;
    return product > 0.0 ? (t * t * m + u * u * n) / product : 0.0;
  };
  for (std::int64_t b = 0; b < n_bins; ++b) {
    const double targets = target[b + 1] - target[b], rest = all[b + 1] - all[b] - targets;
    const double targets_first = purity(target[b] + targets, all[b] + targets);
    const double rest_first = purity(target[b], all[b] + rest);
    behind[b] = purity(target[b + 1], all[b + 1]);
    const double corner = targets_first > rest_first ? targets_first : rest_first;
    inside[b] = corner > behind[b] ? corner : behind[b];
  }
  for (std::int64_t b = 1; b < n_bins; ++b)
    inside[b] = inside[b] > behind[b - 1] ? inside[b] : behind[b - 1];
}

LHTREE_CLONES void find_bins(const double* value, std::int64_t n, double lowest, double scale,
                             std::int32_t last, std::uint8_t* bin) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto number = static_cast<std::int32_t>((value[i] - lowest) * scale);
    bin[i] = static_cast<std::uint8_t>(number < last ? number : last);
  }
}

LHTREE_CLONES void find_bins(const double* value, std::int64_t n, double lowest, double scale,
                             std::int32_t last, std::int32_t* bin) {
  const auto most = static_cast<double>(last);
  for (std::int64_t i = 0; i < n; ++i) {
    double number = (value[i] - lowest) * scale;
    number = number > 0.0 ? number : 0.0;
    bin[i] = static_cast<std::int32_t>(number < most ? number : most);
  }
}

LHTREE_CLONES void project_columns(const double* const* column, std::int64_t n_rows, FormView form,
                                   double* score) {
  std::int64_t i = 0;
  for (; i + lane_count <= n_rows; i += lane_count) {
    Lanes sum[lane_count];  // partial sum r of eight rows
    for (Lanes& lanes : sum) lanes = fill(0.0);
    for (std::int64_t k = 0; k < form.n_terms; ++k) {
      Lanes& lanes = sum[form.feature[k] % lane_count];
      lanes = lanes + fill(form.weight[k]) * load(column[k] + i);
    }
    store(score + i,
          ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7])));
  }
  for (; i < n_rows; ++i) {
    Lanes sum = fill(0.0);
    for (std::int64_t k = 0; k < form.n_terms; ++k)
      sum.add(form.feature[k] % lane_count, form.weight[k] * column[k][i]);
    score[i] = combine(sum);
  }
}

double project_centered(const double* row, FormView form, const double* center) {
  Lanes sum = fill(0.0);
  for (std::int64_t k = 0; k < form.n_terms; ++k) {
    const std::int64_t j = form.feature ? form.feature[k] : k;
    const double offset = row[j] - center[k];
    sum.add(j % lane_count, form.weight[k] * (offset == offset ? offset : 0.0));
  }
  return combine(sum);
}

LHTREE_CLONES void shorten(double* distance, const double* score, std::int64_t n, double threshold,
                           double norm) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double gap = std::abs(score[i] - threshold) / norm;
    distance[i] = gap < distance[i] ? gap : distance[i];
  }
}

LHTREE_CLONES std::int64_t divide_rows(Walkers rows, std::int64_t n, const double* score,
                                       double threshold, Walkers spare) {
  // Both sides are written for every row: which one counts is hard to predict.
  std::int64_t n_left = 0, n_right = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t is_left = score[k] < threshold;
    const std::int32_t row = rows.row[k];
    const double distance = rows.distance[k];
    spare.row[n_right] = row;
    spare.distance[n_right] = distance;
    rows.row[n_left] = row;
    rows.distance[n_left] = distance;
    n_left += is_left;
    n_right += 1 - is_left;
  }
  std::copy_n(spare.row, n_right, rows.row + n_left);
  std::copy_n(spare.distance, n_right, rows.distance + n_left);
  return n_left;
}

LHTREE_CLONES Extremes find_extremes(const double* score, std::int64_t n) {
  Extremes extremes{score[0], score[0]};
  std::int64_t i = 0;
  if (n >= lane_count) {
    double low[lane_count], high[lane_count];  // of every eighth value
    for (int k = 0; k < lane_count; ++k) low[k] = high[k] = score[k];
    for (i = lane_count; i + lane_count <= n; i += lane_count)
      for (int k = 0; k < lane_count; ++k) {
        low[k] = score[i + k] < low[k] ? score[i + k] : low[k];
        high[k] = score[i + k] > high[k] ? score[i + k] : high[k];
      }
    for (int k = 0; k < lane_count; ++k) {
      extremes.min = low[k] < extremes.min ? low[k] : extremes.min;
      extremes.max = high[k] > extremes.max ? high[k] : extremes.max;
    }
  }
  for (; i < n; ++i) {
    extremes.min = score[i] < extremes.min ? score[i] : extremes.min;
    extremes.max = score[i] > extremes.max ? score[i] : extremes.max;
  }
  return extremes;
}

LHTREE_CLONES Extremes transfer_scores(const float* known, const float* length,
                                       const std::uint32_t* row, std::int64_t n, Transfer transfer,
                                       double* guess, double* error) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < n; ++i) {
    guess[i] = transfer.factor * static_cast<double>(known[row[i]]) + transfer.shift;
    error[i] = transfer.reach * static_cast<double>(length[row[i]]) + transfer.floor;
  }
  // A guess that is not a number bounds nothing: comparisons with it are false.
  double above[lane_count], below[lane_count];
  std::fill_n(above, lane_count, infinity);
  std::fill_n(below, lane_count, -infinity);
  std::int64_t i = 0;
  for (; i + lane_count <= n; i += lane_count)
    for (int k = 0; k < lane_count; ++k) {
      const double upper = guess[i + k] + error[i + k], lower = guess[i + k] - error[i + k];
      above[k] = upper < above[k] ? upper : above[k];
      below[k] = lower > below[k] ? lower : below[k];
    }
  for (; i < n; ++i) {
    const double upper = guess[i] + error[i], lower = guess[i] - error[i];
    above[0] = upper < above[0] ? upper : above[0];
    below[0] = lower > below[0] ? lower : below[0];
  }
  return {*std::min_element(above, above + lane_count),
          *std::max_element(below, below + lane_count)};
}

LHTREE_CLONES std::int64_t list_outside(const double* guess, const double* error, std::int64_t n,
                                        double low, double high, std::uint32_t* place) {
  std::int64_t n_listed = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    place[n_listed] = static_cast<std::uint32_t>(i);
    n_listed += !(guess[i] - error[i] > low && guess[i] + error[i] < high);
  }
  return n_listed;
}

LHTREE_CLONES std::int64_t list_near(const double* guess, const double* error, std::int64_t n,
                                     double threshold, std::uint32_t* place) {
  std::int64_t n_listed = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    place[n_listed] = static_cast<std::uint32_t>(i);
    n_listed += !(std::abs(guess[i] - threshold) > error[i]);
  }
  return n_listed;
}

LHTREE_CLONES void measure_rows(const double* const* row, std::int64_t n, const double* middle,
                                std::int64_t n_columns, float* length) {
  for (std::int64_t i = 0; i < n; ++i) length[i] = measure_row(row[i], middle, n_columns);
}

LHTREE_CLONES void measure_rows(const float* const* row, std::int64_t n, const double* middle,
                                std::int64_t n_columns, float* length) {
  for (std::int64_t i = 0; i < n; ++i) length[i] = measure_row(row[i], middle, n_columns);
}

LHTREE_CLONES Outside count_outside(const double* score, RowSet rows, double low, double high) {
  if (!rows.weight) {
    std::int64_t below = 0, above = 0;
    for (std::int64_t i = 0; i < rows.size; ++i) {
      below += score[i] < low;
      above += score[i] > high;
    }
    return {static_cast<double>(below), static_cast<double>(above)};
  }
  Outside outside{0.0, 0.0};
  for (std::int64_t i = 0; i < rows.size; ++i) {
    const double weight = rows.weight[rows.row[i]];
    if (score[i] < low) outside.below += weight;
    if (score[i] > high) outside.above += weight;
  }
  return outside;
}

}  // namespace lhtree
