// The gain of a split: how much it lowers the loss.
#pragma once

#include <cstdint>

#include "stats/sums.hpp"

namespace lhtree::split {

/// What a split must fulfil.
struct Limits {
  double ridge = 0.0;             // added to every sum of hessians
  double least_hessian = 0.0;     // of a side
  std::int64_t least_weight = 0;  // of a side, where weights are summed
  double least_gain = 0.0;        // of a split
  double category_price = 0.0;    // what each category but one takes from the score of a split
};

inline double compute_score(double g, double h, double ridge) {
  return h + ridge > 0.0 ? g * g / (h + ridge) : 0.0;
}

/// The score of a node.
template <class Sums>
double compute_score(const Sums& sums, const Limits& limits) {
  return compute_score(static_cast<double>(sums.g), static_cast<double>(sums.h), limits.ridge);
}

/// What the score of a split must exceed: that of its node by more than rounding and chance.
template <class Sums>
double compute_least_score(const Sums& sums, const Limits& limits) {
  return compute_score(sums, limits) * (1.0 + 0x1p-40) + limits.least_gain;
}

/// The score of a split; both sides have a positive hessian or ridge.
inline double compute_split_score(double a, double x, double c, double y, double ridge) {
  const double xr = x + ridge, yr = y + ridge;
  return (a * a * yr + c * c * xr) / (xr * yr);
}

/// The score of a split, 0 if a side has too little.
template <class Sums>
double compute_split_score(const Sums& left, const Sums& whole, const Limits& limits) {
  const Sums right = whole - left;
  const auto a = static_cast<double>(left.g), x = static_cast<double>(left.h);
  const auto c = static_cast<double>(right.g), y = static_cast<double>(right.h);
  const bool is_allowed = x >= limits.least_hessian && y >= limits.least_hessian &&
                          left.reaches(limits.least_weight) && right.reaches(limits.least_weight);
  return is_allowed ? compute_split_score(a, x, c, y, limits.ridge) : 0.0;
}

}  // namespace lhtree::split
