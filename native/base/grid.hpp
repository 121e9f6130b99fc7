// The grid of a column: its values as integers, so that sums and projections are exact.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/reals.hpp"
#include "base/wide.hpp"

namespace lhtree::base {

constexpr int grid_bits = 30;      // of the range
constexpr int steps_per_std = 20;  // a step is about std * 2**-20
constexpr std::int32_t gap = std::numeric_limits<std::int32_t>::min();  // a missing value

/// z = floor(x * 2**power + 1/2) - origin, clipped to what training saw.
struct Grid {
  int power = 0;
  double origin = 0.0;
  std::int32_t low = 0, high = 0;

  bool is_constant() const { return low == high; }
};

/// Places numbers on a grid.
class Placer {
 public:
  explicit Placer(const Grid& grid)
      : first_(std::ldexp(1.0, grid.power / 2)),
        second_(std::ldexp(1.0, grid.power - grid.power / 2)),
        origin_(grid.origin),
        low_(grid.low),
        high_(grid.high) {}

  /// x * 2**power, in two factors: one alone may be too large.
  double scale(double x) const { return x * first_ * second_; }

  std::int32_t place(double x) const {
    if (std::isnan(x)) return gap;
    return static_cast<std::int32_t>(std::clamp(round_half_up(scale(x)) - origin_, low_, high_));
  }

 private:
  double first_, second_, origin_, low_, high_;
};

/// Exact sums of integers from 0 to 2**31 and of their squares, for a weight below 2**40.
class GridSums {
 public:
  void add(std::uint64_t z, std::uint64_t weight) {
    weight_ += weight;
    first_ += multiply(z, weight);
    second_ += multiply(z * z, weight);
  }

  /// The variance, from sums about the rounded mean.
  double variance() const {
    const std::uint64_t middle = divide(first_ + first_ + Wide{weight_, 0}, 2 * weight_);
    const auto shift = static_cast<double>(
        static_cast<std::int64_t>(first_.low - middle * weight_));  // below the weight
    const Wide cross = multiply(first_, 2 * middle),
               tail = multiply(multiply(middle, middle), weight_);
    const double square = (second_ - cross + tail).to_double();
    const auto n = static_cast<double>(weight_);
    return (square - shift * shift / n) / n;
  }

 private:
  std::uint64_t weight_ = 0;
  Wide first_, second_;
};

/// The largest power of two by which a range takes at most 2**30 steps.
inline int compute_range_power(double low, double high) {
  int exponent = 0;
  std::frexp(high / 2 - low / 2, &exponent);  // halved: the range itself may overflow
  return grid_bits - (exponent + 1);
}

/// The grid of a column. `visit(look)` calls look(x, weight) for all values that are not missing.
template <class Visit>
Grid make_grid(const Visit& visit) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  visit([&](double x, std::uint64_t) {
    low = x < low ? x : low;
    high = x > high ? x : high;
  });
  if (!(low < high)) return {};
  const int coarse = compute_range_power(low, high);
  const Placer whole({coarse, 0.0, 0, 0});
  const double start = round_half_up(whole.scale(low));
  GridSums sums;
  visit([&](double x, std::uint64_t weight) {
    sums.add(static_cast<std::uint64_t>(round_half_up(whole.scale(x)) - start), weight);
  });
  int exponent = 0;
  const double fraction = std::frexp(std::sqrt(sums.variance()), &exponent);
  exponent -= coarse;  // of the standard deviation
  const int nearest = fraction * fraction >= 0.5 ? exponent : exponent - 1;
  Grid grid{std::min(coarse, steps_per_std - nearest), 0.0, 0, 0};
  const Placer fine(grid);
  const bool holds_zero = low <= 0.0 && 0.0 <= high;
  if (!holds_zero) grid.origin = round_half_up(fine.scale(low / 2 + high / 2));
  grid.low = static_cast<std::int32_t>(round_half_up(fine.scale(low)) - grid.origin);
  grid.high = static_cast<std::int32_t>(round_half_up(fine.scale(high)) - grid.origin);
  return grid;
}

}  // namespace lhtree::base
