// Directions in closed form: shrunken least squares of the gradient on some columns of a node.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/grid.hpp"
#include "base/reals.hpp"
#include "split/constraints.hpp"
#include "split/moments.hpp"
#include "split/node_columns.hpp"

namespace lhtree::split {

constexpr int coefficient_bits = 15;
static_assert(coefficient_bits + base::grid_bits + 7 < 53, "projections are below 2**53");

/// About where the projections of a node on a hyperplane lie.
struct Direction {
  Hyperplane hyperplane;
  std::int64_t middle = 0;
  double std = 0.0;
};

/// Solve a symmetric positive definite system in place, in one order of operations.
inline bool solve(std::vector<double>& low, std::vector<double>& x) {
  const std::size_t n = x.size();
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      double sum = low[a * n + b];
      for (std::size_t k = 0; k < b; ++k) sum = sum - low[a * n + k] * low[b * n + k];
      if (a == b && !(sum > 0.0)) return false;
      low[a * n + b] = a == b ? std::sqrt(sum) : sum / low[b * n + b];
    }
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t k = 0; k < a; ++k) x[a] = x[a] - low[a * n + k] * x[k];
    x[a] = x[a] / low[a * n + a];
  }
  for (std::size_t a = n; a-- > 0;) {
    for (std::size_t k = a + 1; k < n; ++k) x[a] = x[a] - low[k * n + a] * x[k];
    x[a] = x[a] / low[a * n + a];
  }
  return true;
}

/// Weights as integers of 15 bits relative to the largest; terms that round to zero are gone.
inline Direction round_direction(const NodeColumns& columns, const Moments& moments,
                                 const std::vector<std::int64_t>& terms,
                                 const std::vector<double>& x) {
  double largest = 0.0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  if (!(largest > 0.0)) return {};
  int exponent = 0;
  std::frexp(largest, &exponent);
  constexpr double limit = (1 << coefficient_bits) - 1;
  Direction result;
  std::vector<std::int64_t> kept;
  std::vector<double> scaled;
  for (std::size_t a = 0; a < x.size(); ++a) {
    const double rounded = base::round_half_up(std::ldexp(x[a], coefficient_bits - exponent));
    const auto weight = static_cast<std::int32_t>(std::clamp(rounded, -limit, limit));
    if (weight == 0) continue;
    const std::int64_t k = terms[a];
    kept.push_back(k);
    scaled.push_back(std::ldexp(weight, columns.shift(k)));
    result.hyperplane.column.push_back(columns.column(k));
    result.hyperplane.weight.push_back(weight);
    result.hyperplane.fill.push_back(columns.fill(k));
    result.middle += std::int64_t{weight} * columns.center(k);
  }
  if (kept.size() < 2) return {};  // a single column has better cuts of its own
  double variance = 0.0;
  for (std::size_t a = 0; a < kept.size(); ++a)
    for (std::size_t b = 0; b < kept.size(); ++b)
      variance = variance + scaled[a] * scaled[b] * moments(kept[a], kept[b]);
  result.std = std::sqrt(std::max(variance, 0.0) / moments.weight());
  return result;
}

/// Shrunken least squares on some terms, by which they are multiplied on the grid; empty if there
/// is no solution.
inline std::vector<double> solve_least_squares(const NodeColumns& columns, const Moments& moments,
                                               const std::vector<std::int64_t>& terms,
                                               double shrinkage) {
  const std::size_t p = terms.size();
  if (p < 2) return {};
  const double keep = 1.0 - shrinkage;
  std::vector<double> std(p), matrix(p * p), x(p);
  for (std::size_t a = 0; a < p; ++a) {
    const double variance = moments(terms[a], terms[a]);
    if (!(variance > 0.0)) return {};
    std[a] = std::sqrt(variance);
  }
  for (std::size_t a = 0; a < p; ++a) {
    x[a] = moments.with_gradient(terms[a]) / std[a];
    for (std::size_t b = 0; b < p; ++b)
      matrix[a * p + b] = a == b ? 1.0 : keep * moments(terms[a], terms[b]) / (std[a] * std[b]);
  }
  if (!solve(matrix, x)) return {};
  for (std::size_t a = 0; a < p; ++a) x[a] = std::ldexp(x[a] / std[a], -columns.shift(terms[a]));
  return x;
}

/// Drop terms that would raise the gradient with a column that may only lower it, or the reverse;
/// returns whether there were any.
inline bool drop_wrong_terms(const NodeColumns& columns, const Constraints& constraints,
                             const std::vector<double>& x, std::vector<std::int64_t>& terms) {
  std::vector<std::int64_t> kept;
  for (std::size_t a = 0; a < terms.size(); ++a)
    if (!(x[a] * constraints.trend_of(columns.column(terms[a])) > 0.0)) kept.push_back(terms[a]);
  std::swap(kept, terms);
  return terms.size() < kept.size();
}

/// A direction on the columns from `first` to `last`; empty if there is none.
inline Direction compute_direction(const NodeColumns& columns, const Moments& moments,
                                   std::int64_t first, std::int64_t last, double shrinkage,
                                   const Constraints& constraints) {
  std::vector<std::int64_t> terms(last - first);
  std::iota(terms.begin(), terms.end(), first);
  for (;;) {
    const std::vector<double> x = solve_least_squares(columns, moments, terms, shrinkage);
    if (x.empty()) return {};
    if (!constraints.is_monotone() || !drop_wrong_terms(columns, constraints, x, terms))
      return round_direction(columns, moments, terms, x);
  }
}

}  // namespace lhtree::split
