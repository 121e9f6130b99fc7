// Loops that take the time: projections and values of columns, side by side.
//
// They are compiled once per instruction set and picked at load time; all
// versions give the same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "table.hpp"

namespace lhtree {

/// value[i] = column[row[i]].
void gather_values(const double* column, const std::uint32_t* row, std::int64_t n, double* value);
void gather_values(const float* column, const std::uint32_t* row, std::int64_t n, double* value);

/// value[i] = (value[i] - center) / unit.
void standardize_values(double* value, std::int64_t n, double center, double unit);

/// Distance from a hyperplane.
LHTREE_INLINE double find_gap(double score, double threshold, double norm) {
  return std::abs(score - threshold) / norm;
}

/// gap[i] = find_gap(score[i], threshold, norm).
void find_gaps(const double* score, std::int64_t n, double threshold, double norm, double* gap);

/// Move the `n` rows with a score below the threshold to the front and the others behind
/// them, each in their order; `spare` has room for all. Returns how many are in front.
std::int64_t divide_rows(std::int32_t* row, std::int64_t n, const double* score, double threshold,
                         std::int32_t* spare);

/// Smallest and largest of `n` > 0 values.
struct Extremes {
  double min;
  double max;
};
Extremes find_extremes(const double* score, std::int64_t n);

/// How many of the values lie strictly below `low` and strictly above `high`.
struct Outside {
  double below;
  double above;
};
Outside count_outside(const double* score, RowSet rows, double low, double high);

/// For each bin of rows, how pure cuts in it can be: the larger, the purer.
///
/// A cut with weight n on its left, t of it targets, has purity t^2 / n plus the same of
/// its right. `behind` gets the purity of the cut behind each bin, `inside` a bound for
/// those inside: purity is convex, so it is largest at an end of the bin or where all of
/// its targets, or all of its rest, lie on the left. `target` and `all` hold the sums
/// before each bin and, at n_bins, those of all rows. A cut with nothing on one side has
/// purity 0.
void find_purity(const double* target, const double* all, std::int64_t n_bins, double* behind,
                 double* inside);

/// Number the values by bins of equal width: (value - lowest) * scale, at most `last`.
void find_bins(const double* value, std::int64_t n, double lowest, double scale, std::int32_t last,
               std::uint16_t* bin);

/// The same for up to 2^31 bins and values that may lie beyond the ends: they go into the
/// first and the last.
void find_bins(const double* value, std::int64_t n, double lowest, double scale, std::int32_t last,
               std::int32_t* bin);

/// The largest value of the bins up to number `bin`, and the smallest of those behind it.
struct Edge {
  double below;
  double above;
};
Edge find_edge(const double* value, const std::uint16_t* code, std::int64_t n, std::uint16_t bin);

}  // namespace lhtree
