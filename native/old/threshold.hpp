// The constant that cuts the projections of a node.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rules.hpp"
#include "score_kernels.hpp"

namespace lhtree {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double same_impurity = 1e-12;  // impurities this close are equal

/// Projections of a node's rows, targets first, and the weight of each if they differ.
struct Scores {
  const double* score;
  const double* weight;  // null: every row counts once
  std::int64_t n_targets;
  std::int64_t n_rows;

  double weight_of(std::int64_t i) const { return weight ? weight[i] : 1.0; }
};

/// Weighted targets and rows on the left of a cut.
struct LeftSide {
  double target = 0.0;
  double all = 0.0;
};

/// Gini impurity of a cut, up to the factor two, from its purity; see find_purity.
inline double find_impurity(double purity, LeftSide whole) {
  return (whole.target - purity) / whole.all;
}

/// The same from the weights on its left. A side that holds rows may weigh nothing, if
/// weights are so far apart that sums lose the small ones; its share then counts nothing.
inline double find_impurity(LeftSide left, LeftSide whole) {
  const double right = whole.all - left.all, right_target = whole.target - left.target;
  const double right_purity = right > 0.0 ? right_target * right_target / right : 0.0;
  return find_impurity(left.target * left.target / left.all + right_purity, whole);
}

inline LeftSide sum_left(const Scores& scores, double threshold) {
  LeftSide left;
  for (std::int64_t i = 0; i < scores.n_rows; ++i) {
    if (!(scores.score[i] < threshold)) continue;
    left.all += scores.weight_of(i);
    if (i < scores.n_targets) left.target += scores.weight_of(i);
  }
  return left;
}

/// Cut off the largest pure piece, or go through the middle.
inline Threshold choose_pure(const Outside& targets, const Outside& others, const Extremes& target,
                             const Extremes& rest, double gamma) {
  const double n1 = targets.below, n2 = targets.above, n3 = others.below, n4 = others.above;
  const double largest = std::max(std::max(n1, n2), std::max(n3, n4));
  if (largest > 0.0 && largest >= gamma) {
    if (n1 == largest) return {rest.min, Rule::n1};
    if (n2 == largest) return {std::nextafter(rest.max, infinity), Rule::n2};
    if (n3 == largest) return {target.min, Rule::n3};
    return {std::nextafter(target.max, infinity), Rule::n4};
  }
  const double lowest = std::min(target.min, rest.min), highest = std::max(target.max, rest.max);
  double middle = rest.min / 4 + rest.max / 4 + target.min / 4 + target.max / 4;
  // Rounding may carry the middle of neighbouring numbers onto or past an end.
  if (!(middle > lowest)) middle = std::nextafter(lowest, infinity);
  return {std::min(middle, highest), Rule::middle};
}

/// Half-way between neighbouring projections a < b; b where rounding meets a.
inline double cut_between(double a, double b) {
  const double middle = a + (b - a) / 2;
  return middle > a ? middle : b;
}

}  // namespace lhtree
