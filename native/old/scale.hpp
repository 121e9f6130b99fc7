// Mean and deviation of every column, and the rows in these units.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "pages.hpp"
#include "statistics.hpp"

namespace lhtree {

struct ColumnScale {
  std::vector<double> mean;
  std::vector<double> deviation;  // 1 for a constant column
};

/// Deviation of one column in units of its largest distance from the mean, for
/// columns so small that their squares vanish.
template <class T>
double find_small_deviation(const Table<T>& table, RowSet rows, std::int64_t j, double mean,
                            const StopFlag& stop) {
  check_stop(stop);
  double largest = 0.0, square = 0.0, weight_sum = 0.0;
  for (std::int64_t i = 0; i < rows.size; ++i)
    largest = std::max(largest, std::abs(table.row(rows.row[i])[j] - mean));
  for (std::int64_t i = 0; i < rows.size && largest > 0.0; ++i) {
    const double distance = (table.row(rows.row[i])[j] - mean) / largest;
    if (distance != distance) continue;  // missing
    const double weight = rows.weight ? rows.weight[rows.row[i]] : 1.0;
    square += weight * distance * distance;
    weight_sum += weight;
  }
  const double deviation = largest * std::sqrt(square / weight_sum);
  return deviation > 0.0 ? deviation : 1.0;
}

/// A value of each column; 0 where all are missing.
template <class T>
std::vector<double> find_first(const Table<T>& table) {
  std::vector<double> first(table.width, 0.0);
  for (std::int64_t j = 0; j < table.n_columns; ++j)
    for (std::int64_t i = 0; i < table.n_rows; ++i) {
      const auto value = static_cast<double>(table.row(i)[j]);
      if (value != value) continue;
      first[j] = value;
      break;
    }
  return first;
}

/// Weighted mean and population deviation of every column, over the rows that have it, in
/// two passes: the first finds a point near the mean, the second sums about it. A column
/// without a value has mean 0 and deviation 1.
template <class T>
ColumnScale find_scale(const Table<T>& table, const double* weight, const StopFlag& stop) {
  constexpr double smallest_variance = 1e-250;
  PageVector<std::uint32_t> row(table.n_rows);
  std::iota(row.begin(), row.end(), 0u);
  const NodeRows rows{{row.data(), table.n_rows, weight}, {nullptr, 0, nullptr}};
  // The sums of all rows, as those of the targets of a node without a rest.
  Moments moments(table.width, table.has_missing);
  const std::vector<double> first = find_first(table);
  moments.origin = first;
  sum_exactly(table, rows, moments, stop);
  for (std::int64_t j = 0; j < table.n_columns; ++j)
    if (moments.column(j).weight() > 0.0) moments.origin[j] = moments.column(j).mean();
  sum_exactly(table, rows, moments, stop);

  ColumnScale scale{std::vector<double>(table.n_columns, 0.0),
                    std::vector<double>(table.n_columns, 1.0)};
  for (std::int64_t j = 0; j < table.n_columns; ++j) {
    const double weight_sum = moments.column(j).weight();
    if (!(weight_sum > 0.0)) continue;  // all missing
    const double shift = moments.sum_target[j] / weight_sum, mean = moments.origin[j] + shift;
    const double variance = moments.square[j] / weight_sum - shift * shift;
    const bool is_flat = !(variance > 1e-24 * mean * mean) && is_constant(table, rows, j, stop);
    scale.mean[j] = is_flat ? first[j] : mean;
    if (is_flat)
      scale.deviation[j] = 1.0;
    else if (variance < smallest_variance)
      scale.deviation[j] = find_small_deviation(table, rows.target, j, mean, stop);
    else
      scale.deviation[j] = std::sqrt(variance);
  }
  return scale;
}

/// Whether no value is missing or infinite.
template <class T>
bool is_finite(const T* values, std::size_t n) {
  // Zeros stay zero in a sum; infinities and NaN, times zero, make it NaN.
  const std::size_t n_whole = n / lane_count * lane_count;
  Lanes sums = fill(0.0);
  for (std::size_t i = 0; i < n_whole; i += lane_count) sums = sums + load(values + i) * fill(0.0);
  double sum = combine(sums);
  for (std::size_t i = n_whole; i < n; ++i) sum += values[i] * 0.0;
  return sum == 0.0;
}

template <class T>
bool has_infinity(const T* values, std::size_t n) {
  bool is_found = false;
  for (std::size_t i = 0; i < n; ++i)
    is_found |= std::abs(values[i]) > std::numeric_limits<T>::max();
  return is_found;
}

/// Columns with a number that is beyond the limit; missing values are not.
template <class T>
std::vector<std::int64_t> find_beyond(const T* values, std::int64_t n_rows, std::int64_t n_columns,
                                      double limit, const StopFlag& stop) {
  std::vector<std::uint8_t> is_beyond(n_columns, 0);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    if (i % 4096 == 0) check_stop(stop);
    const T* row = values + i * n_columns;
    for (std::int64_t j = 0; j < n_columns; ++j)
      is_beyond[j] |= std::abs(static_cast<double>(row[j])) > limit;
  }
  std::vector<std::int64_t> column;
  for (std::int64_t j = 0; j < n_columns; ++j)
    if (is_beyond[j]) column.push_back(j);
  return column;
}

/// Rows in units of their columns' deviations.
template <class T>
void standardize(const T* values, std::int64_t n_rows, std::int64_t n_columns, const double* mean,
                 const double* deviation, double* scaled) {
  for (std::int64_t i = 0; i < n_rows; ++i)
    for (std::int64_t j = 0; j < n_columns; ++j)
      scaled[i * n_columns + j] = (values[i * n_columns + j] - mean[j]) / deviation[j];
}

/// The same, written by columns of `n_all_rows` rows each.
template <class T>
void standardize_columns(const T* values, std::int64_t n_rows, std::int64_t n_columns,
                         const double* mean, const double* deviation, double* scaled,
                         std::int64_t n_all_rows) {
  constexpr std::int64_t block = 32;  // rows whose cache lines stay until all columns are done
  for (std::int64_t begin = 0; begin < n_rows; begin += block) {
    const std::int64_t end = std::min(n_rows, begin + block);
    for (std::int64_t j = 0; j < n_columns; ++j)
      for (std::int64_t i = begin; i < end; ++i)
        scaled[j * n_all_rows + i] = (values[i * n_columns + j] - mean[j]) / deviation[j];
  }
}

}  // namespace lhtree
