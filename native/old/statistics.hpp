// What a node knows of its rows: sums that merge over parts of the rows.
//
// All sums are taken about an `origin`, which is zero unless a column is so far
// from zero, for its spread in the node, that its variance would drown in
// rounding. Contrasts, variances and slopes do not depend on the origin.
// A missing value (NaN) takes no part: each column then has weights of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "node.hpp"
#include "stop.hpp"
#include "sum_kernels.hpp"

namespace lhtree {

/// Sums of one column over the two sides of a node, targets and rest.
struct ColumnMoments {
  double weight_target, weight_rest;  // of the rows that have a value
  double origin;
  double sum_target, sum_rest;  // of w (x - origin)
  double square;                // sum of w (x - origin)^2 over both

  double weight() const { return weight_target + weight_rest; }
  double sum() const { return sum_target + sum_rest; }
  double mean() const { return origin + sum() / weight(); }

  /// Squared weight times variance: one subtraction of exact products on small integers.
  double spread() const { return weight() * square - sum() * sum(); }
  double variance() const { return spread() / (weight() * weight()); }

  /// Mean of the targets minus mean of the rest (the paper's SD).
  double contrast() const { return sum_target / weight_target - sum_rest / weight_rest; }

  /// Whether the contrast is more than rounding, for a column of this variance.
  bool has_contrast(double variance) const {
    constexpr double smallest = 1e-10;  // in deviations of the node
    return std::abs(contrast()) > smallest * std::sqrt(variance);
  }

  /// The contrast, 0 where it is no more than rounding.
  double clean_contrast(double variance) const { return has_contrast(variance) ? contrast() : 0.0; }

  /// Sums over `all` weight if the missing values are at the mean.
  double filled_sum(double all) const { return sum() * (all / weight()); }
  double filled_square(double all) const {
    const double shift = sum() / weight();
    return square + (all - weight()) * shift * shift;
  }

  /// Least-squares slope of the target indicator on this column alone.
  double slope() const { return (weight() * sum_target - weight_target * sum()) / spread(); }
};

/// The sums of all columns.
struct Moments {
  double weight_target = 0.0;
  double weight_rest = 0.0;
  std::int64_t n_exact = 0;            // rows of the last exact sum, from which this one descends
  std::vector<double> origin;          // [width] zero unless a column is ill-conditioned
  std::vector<double> sum_target;      // [width]
  std::vector<double> sum_rest;        // [width]
  std::vector<double> square;          // [width]
  std::vector<double> present_target;  // [width] weight of the targets that have a value;
  std::vector<double> present_rest;    // [width] and of the rest; empty: all rows have all
  std::vector<double> scale;           // [width] square / weight at the last exact sum
  std::vector<std::uint8_t> is_fixed;  // [width] constant in the node, or not a column of the tree

  Moments(std::int64_t width, bool has_missing)
      : origin(width),
        sum_target(width),
        sum_rest(width),
        square(width),
        present_target(has_missing ? width : 0),
        present_rest(has_missing ? width : 0),
        scale(width),
        is_fixed(width) {}

  bool has_missing() const { return !present_target.empty(); }
  ColumnMoments column(std::int64_t j) const {
    const double target = has_missing() ? present_target[j] : weight_target;
    const double rest = has_missing() ? present_rest[j] : weight_rest;
    return {target, rest, origin[j], sum_target[j], sum_rest[j], square[j]};
  }
};

/// A variance below this part of the numbers that it is the difference of has lost
/// its digits to rounding.
inline constexpr double smallest_ratio = 1e-6;

/// `add_rows` in pieces that end within milliseconds, so that a stop is noticed;
/// `add_present_rows` if `present` is not null.
template <class T>
void add_rows(const Table<T>& table, RowSet rows, const double* origin, double* sum, double* square,
              double* present, const StopFlag& stop) {
  constexpr std::int64_t piece = 4096;
  for (std::int64_t begin = 0; begin < rows.size; begin += piece) {
    check_stop(stop);
    const RowSet part{rows.row + begin, std::min(piece, rows.size - begin), rows.weight};
    if (present)
      add_present_rows(table, part, origin, sum, square, present);
    else
      add_rows(table, part, origin, sum, square);
  }
}

/// Empty the sums that are added up by groups of rows.
inline void clear_sums(Moments& moments) {
  for (auto* sums : {&moments.sum_target, &moments.sum_rest, &moments.square})
    std::fill(sums->begin(), sums->end(), 0.0);
}

/// Add a group of rows, all targets or all rest: as many sums as columns, then squares.
inline void add_group(const double* group, bool is_target, Moments& moments) {
  std::vector<double>& sum = is_target ? moments.sum_target : moments.sum_rest;
  const std::size_t width = sum.size();
  for (std::size_t j = 0; j < width; ++j) {
    sum[j] += group[j];
    moments.square[j] += group[width + j];
  }
}

/// Complete sums that were just added up from these rows.
inline void finish_sums(const NodeRows& rows, Moments& moments) {
  moments.weight_target = sum_weight(rows.target);
  moments.weight_rest = sum_weight(rows.rest);
  moments.n_exact = rows.size();
  for (std::size_t j = 0; j < moments.scale.size(); ++j)
    moments.scale[j] = moments.square[j] / moments.column(j).weight();
}

/// Fill the sums from the rows themselves, about the origin that is there.
template <class T>
void sum_exactly(const Table<T>& table, const NodeRows& rows, Moments& moments,
                 const StopFlag& stop) {
  for (auto* sums : {&moments.sum_target, &moments.sum_rest, &moments.square,
                     &moments.present_target, &moments.present_rest})
    std::fill(sums->begin(), sums->end(), 0.0);
  const double* origin = moments.origin.data();
  double* square = moments.square.data();
  const bool has_missing = moments.has_missing();
  add_rows(table, rows.target, origin, moments.sum_target.data(), square,
           has_missing ? moments.present_target.data() : nullptr, stop);
  add_rows(table, rows.rest, origin, moments.sum_rest.data(), square,
           has_missing ? moments.present_rest.data() : nullptr, stop);
  finish_sums(rows, moments);
}

/// Move the sums of some rows from one node's to another's, all about the same origin.
inline void move_sums(const Moments& part, Moments& from, Moments& to) {
  for (std::size_t j = 0; j < part.square.size(); ++j) {
    from.sum_target[j] -= part.sum_target[j];
    from.sum_rest[j] -= part.sum_rest[j];
    from.square[j] -= part.square[j];
    to.sum_target[j] += part.sum_target[j];
    to.sum_rest[j] += part.sum_rest[j];
    to.square[j] += part.square[j];
  }
}

/// Take a part's sums out of the whole's: what stays describes the other part. With
/// missing values rows must count once: that none is present has to be exact.
inline void subtract(Moments& whole, const Moments& part, const NodeRows& other_rows) {
  for (std::size_t j = 0; j < whole.square.size(); ++j) {
    whole.sum_target[j] -= part.sum_target[j];
    whole.sum_rest[j] -= part.sum_rest[j];
    whole.square[j] -= part.square[j];
  }
  for (std::size_t j = 0; j < whole.present_target.size(); ++j) {
    whole.present_target[j] -= part.present_target[j];
    whole.present_rest[j] -= part.present_rest[j];
  }
  whole.weight_target = sum_weight(other_rows.target);
  whole.weight_rest = sum_weight(other_rows.rest);
}

/// Whether all rows of the node that have a value in column j have the same.
template <class T>
bool is_constant(const Table<T>& table, const NodeRows& rows, std::int64_t j,
                 const StopFlag& stop) {
  check_stop(stop);
  T first = std::numeric_limits<T>::quiet_NaN();
  for (const RowSet& part : {rows.target, rows.rest})
    for (std::int64_t i = 0; i < part.size; ++i) {
      const T value = table.row(part.row[i])[j];
      if (value < first || value > first) return false;
      if (!(first == first)) first = value;
    }
  return true;
}

/// Make the sums fit to be used: find constant columns, and sum anew where a
/// variance has become small against the numbers that it is the difference of. Returns
/// whether it summed.
template <class T>
bool settle(const Table<T>& table, const NodeRows& rows, Moments& moments, const StopFlag& stop) {
  constexpr int most_attempts = 4;  // each moves the origin closer to the mean
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const bool is_exact = moments.n_exact == rows.size();
    bool is_ill = false;
    for (std::int64_t j = 0; j < table.n_columns; ++j) {
      const ColumnMoments column = moments.column(j);
      if (moments.is_fixed[j] || column.variance() > smallest_ratio * moments.scale[j]) continue;
      if (is_constant(table, rows, j, stop)) {
        moments.is_fixed[j] = 1;
        continue;
      }
      is_ill = true;
      if (is_exact) moments.origin[j] = column.mean();
    }
    if (!is_ill) return attempt > 0;
    sum_exactly(table, rows, moments, stop);
  }
  return true;
}

}  // namespace lhtree
