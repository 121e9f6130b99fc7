// The grid of a column: its values as integers, so that sums and projections are exact.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/reals.hpp"
#include "base/wide.hpp"
#include "old/parallel.hpp"

namespace lhtree::base {

constexpr int grid_bits = 30;                                           // of the range
constexpr int steps_per_std = 20;                                       // a step is std * 2**-20
constexpr std::int32_t gap = std::numeric_limits<std::int32_t>::min();  // a missing value

/// z = floor(x * 2**power + 1/2) - origin, clipped to what training saw.
class Grid {
 public:
  Grid() = default;
  Grid(int power, double origin, double low, double high)
      : first_(std::ldexp(1.0, power / 2)),
        second_(std::ldexp(1.0, power - power / 2)),
        origin_(origin),
        low_(round_up(scale(low)) - origin),
        high_(round_up(scale(high)) - origin) {}

  /// x * 2**power, in two factors: one alone may be too large.
  double scale(double x) const { return x * first_ * second_; }

  std::int32_t place(double x) const {
    if (std::isnan(x)) return gap;
    return static_cast<std::int32_t>(std::clamp(round_up(scale(x)) - origin_, low_, high_));
  }

  bool is_constant() const { return low_ == high_; }

 private:
  double first_ = 1.0, second_ = 1.0, origin_ = 0.0, low_ = 0.0, high_ = 0.0;
};

/// Exact sums of integers from 0 to 2**31 and of their squares, for up to 2**31 rows.
class GridSums {
 public:
  void add(std::uint64_t z) {
    const std::uint64_t square = z * z;
    ++n_;
    first_ += z;
    low_ += square & 0xFFFFFFFFu;
    high_ += square >> 32;
  }

  /// The variance, from sums about the rounded mean.
  double variance() const {
    const std::uint64_t middle = (2 * first_ + n_) / (2 * n_);
    const auto shift = static_cast<double>(static_cast<std::int64_t>(first_ - middle * n_));
    const Wide squares = Wide{low_, 0} + Wide{high_ << 32, high_ >> 32};
    const Wide cross = multiply(2 * middle, first_), tail = multiply(middle * middle, n_);
    const double square = (squares - cross + tail).to_double(), n = static_cast<double>(n_);
    return (square - shift * shift / n) / n;
  }

 private:
  std::uint64_t n_ = 0, first_ = 0, low_ = 0, high_ = 0;
};

/// The largest power of two by which a range takes at most 2**30 steps.
inline int compute_range_power(double low, double high) {
  int exponent = 0;
  std::frexp(high / 2 - low / 2, &exponent);  // halved: the range itself may overflow
  return grid_bits - (exponent + 1);
}

/// The grid of a column of `n` values, `stride` apart.
template <class T>
Grid make_grid(const T* value, std::int64_t n, std::int64_t stride) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(value[i * stride]);
    low = x < low ? x : low;  // false where it is missing
    high = x > high ? x : high;
  }
  if (!(low < high)) return {};
  const int coarse = compute_range_power(low, high);
  const Grid whole(coarse, 0.0, low, high);
  const double start = round_up(whole.scale(low));
  GridSums sums;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(value[i * stride]);
    if (!std::isnan(x)) sums.add(static_cast<std::uint64_t>(round_up(whole.scale(x)) - start));
  }
  int exponent = 0;
  const double fraction = std::frexp(std::sqrt(sums.variance()), &exponent);
  exponent -= coarse;  // of the standard deviation
  const int nearest = fraction * fraction >= 0.5 ? exponent : exponent - 1;
  const int power = std::min(coarse, steps_per_std - nearest);
  const bool holds_zero = low <= 0.0 && 0.0 <= high;
  const Grid fine(power, 0.0, low, high);
  const double origin = holds_zero ? 0.0 : round_up(fine.scale(low / 2 + high / 2));
  return {power, origin, low, high};
}

/// A table on the grid: one word a value, row after row; the memory is another's.
struct GridTable {
  std::int64_t n_rows = 0;
  std::int64_t n_columns = 0;
  const std::int32_t* z = nullptr;  // [n_rows, n_columns]

  const std::int32_t* row(std::int64_t i) const { return z + i * n_columns; }
};

/// The grids of all columns, and the table on them.
template <class T>
std::vector<std::int32_t> place_table(const T* value, std::int64_t n_rows, std::int64_t n_columns,
                                      std::int64_t n_threads, const Poll& poll) {
  std::vector<std::int32_t> z(n_rows * n_columns);
  run_tasks(
      n_columns, n_threads,
      [&](std::int64_t j, const StopFlag& stop) {
        const Grid grid = make_grid(value + j, n_rows, n_columns);
        check_stop(stop);
        for (std::int64_t i = 0; i < n_rows; ++i)
          z[i * n_columns + j] = grid.place(static_cast<double>(value[i * n_columns + j]));
      },
      poll);
  return z;
}

}  // namespace lhtree::base
