// The gain of a split: how much it lowers the loss.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/instructions.hpp"
#include "split/constraints.hpp"
#include "stats/sums.hpp"

namespace lhtree::split {

/// What a split must fulfil.
struct Limits {
  double ridge = 0.0;             // added to every sum of hessians
  double least_hessian = 0.0;     // of a side
  std::int64_t least_weight = 0;  // of a side, where weights are summed
  double least_gain = 0.0;        // of a split
  double category_price = 0.0;    // what each category but one takes from the score of a split
  double term_price = 0.0;        // what each term of a hyperplane but one takes from it
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

/// The sums of both sides of a split as doubles, and whether both have enough.
template <class Sums>
struct Sides {
  double a, x, c, y;  // g and h of the left, of the right
  bool is_allowed;

  Sides(const Sums& left, const Sums& whole, const Limits& limits) {
    const Sums right = whole - left;
    a = static_cast<double>(left.g), x = static_cast<double>(left.h);
    c = static_cast<double>(right.g), y = static_cast<double>(right.h);
    is_allowed = x >= limits.least_hessian && y >= limits.least_hessian &&
                 left.reaches(limits.least_weight) && right.reaches(limits.least_weight);
  }
};

/// The score of a split, 0 if a side has too little.
template <class Sums>
double compute_split_score(const Sums& left, const Sums& whole, const Limits& limits) {
  const Sides<Sums> s(left, whole, limits);
  return s.is_allowed ? compute_split_score(s.a, s.x, s.c, s.y, limits.ridge) : 0.0;
}

// Within bounds, Newton steps are clipped, and the score of a split is its gain.

/// The step of a sum of gradients; `down` is the sum of hessians and the ridge.
LHTREE_INLINED double compute_step(double g, double down, const StepBounds& bounds) {
  return bounds.clip(-g / down);
}

/// Twice by how much a step lowers the loss.
LHTREE_INLINED double score_step(double g, double down, double step) {
  return -step * (2.0 * g + down * step);
}

/// The score of a node within bounds.
template <class Sums>
double score_node(const Sums& sums, const Limits& limits, const StepBounds& bounds) {
  const auto g = static_cast<double>(sums.g);
  const double down = static_cast<double>(sums.h) + limits.ridge;
  return score_step(g, down, compute_step(g, down, bounds));
}

/// The gain of a split, 0 if its steps are not in order; x and y have the ridge in them.
LHTREE_INLINED double compute_gain(double a, double x, double c, double y, double node_score,
                                   const StepBounds& bounds, double order) {
  const double left = compute_step(a, x, bounds), right = compute_step(c, y, bounds);
  const double gain = score_step(a, x, left) + score_step(c, y, right) - node_score;
  return order * left <= order * right ? gain : 0.0;
}

/// The gain of a split, 0 also if a side has too little.
template <class Sums>
double compute_gain(const Sums& left, const Sums& whole, const Limits& limits, double node_score,
                    const StepBounds& bounds, double order) {
  const Sides<Sums> s(left, whole, limits);
  const double ridge = limits.ridge;
  if (!s.is_allowed) return 0.0;
  return compute_gain(s.a, s.x + ridge, s.c, s.y + ridge, node_score, bounds, order);
}

/// What the score of a node is to those of its splits; `bounds` may be null.
template <class Sums>
double compute_score(const Sums& sums, const Limits& limits, const StepBounds* bounds) {
  return bounds ? 0.0 : compute_score(sums, limits);
}

/// What the score of a split must exceed; `bounds` may be null.
template <class Sums>
double compute_least_score(const Sums& sums, const Limits& limits, const StepBounds* bounds) {
  if (!bounds) return compute_least_score(sums, limits);
  return std::abs(score_node(sums, limits, *bounds)) * 0x1p-40 + limits.least_gain;
}

/// Bounds of the children of a split from the sums of its sides.
template <class Sums>
auto divide_bounds(const Sums& left, const Sums& right, const Limits& limits,
                   const StepBounds& bounds, int order) {
  const auto step = [&](const Sums& side) {
    return compute_step(static_cast<double>(side.g), static_cast<double>(side.h) + limits.ridge,
                        bounds);
  };
  return bounds.divide(order, (step(left) + step(right)) * 0.5);
}

}  // namespace lhtree::split
