// The weights of a hyperplane, in closed form from the sums of its columns.
//
// Each contrast gives every column a strength, by which columns are chosen, and a
// weight. SD is the difference of the class means, s the deviation in the node:
//
//   mean           strength SD          weight SD            the paper's rule
//   standardized   strength SD / s      weight SD / s^2      Fisher, diagonal covariance
//   fisher         strength a           weight a / s         Fisher, shrunken covariance
//
// where a solves R a = SD / s, with R the correlation within the classes, its
// off-diagonal elements shrunk by W / (W + p) for p columns and rows of weight W,
// and 0.1 added to its diagonal. Missing values take no part in SD and s; in R they
// are at the mean of their column, and R is what the class leaves of the correlation
// of the columns filled so: r_ij - r_iP r_jP, with P the indicator of the targets.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "rules.hpp"
#include "statistics.hpp"

namespace lhtree {

/// A column of a plane: its number and its sums.
struct PlaneColumn {
  std::int32_t feature;
  ColumnMoments moments;
};

inline double find_strongest(const std::vector<double>& strength) {
  double strongest = 0.0;
  for (const double value : strength) strongest = std::max(strongest, std::abs(value));
  return strongest;
}

/// Solve R a = b in place for a symmetric positive definite R, given by its lower
/// triangle in rows; false if it is not positive definite.
inline bool solve_cholesky(std::vector<double>& R, std::vector<double>& b) {
  const std::size_t p = b.size();
  for (std::size_t i = 0; i < p; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double x = R[i * p + j];
      for (std::size_t k = 0; k < j; ++k) x -= R[i * p + k] * R[j * p + k];
      if (i == j && !(x > 0.0)) return false;
      R[i * p + j] = i == j ? std::sqrt(x) : x / R[j * p + j];
    }
  for (std::size_t i = 0; i < p; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= R[i * p + k] * b[k];
    b[i] /= R[i * p + i];
  }
  for (std::size_t i = p; i-- > 0;) {
    for (std::size_t k = i + 1; k < p; ++k) b[i] -= R[k * p + i] * b[k];
    b[i] /= R[i * p + i];
  }
  return true;
}

/// Strengths of Fisher's direction in a node of these weights; `product` holds the sums of
/// w (x_i - o_i)(x_j - o_j), missing values at their mean, as a lower triangle in rows and
/// is used up. Empty if there is none.
inline std::vector<double> find_fisher(const std::vector<PlaneColumn>& columns,
                                       double weight_target, double weight_rest,
                                       std::vector<double>& product) {
  constexpr double ridge = 0.1;
  const std::size_t p = columns.size();
  const double weight = weight_target + weight_rest;
  const double between = weight_target * weight_rest / (weight * weight);
  const double shrinkage = weight / (weight + static_cast<double>(p));
  std::vector<double> strength(p), deviation(p), contrast(p), sum(p);
  for (std::size_t i = 0; i < p; ++i) {
    const ColumnMoments& column = columns[i].moments;
    const double variance = column.variance(), present = column.weight() / weight;
    const double pairs = weight_target * weight_rest * present;
    deviation[i] = std::sqrt(variance);
    contrast[i] = column.clean_contrast(variance);
    strength[i] = contrast[i] / deviation[i];
    // From here on, of the columns filled with their means.
    contrast[i] *= column.weight_target * column.weight_rest / pairs;
    deviation[i] *= std::sqrt(present);
    sum[i] = column.filled_sum(weight);
    for (std::size_t j = 0; j <= i; ++j) {
      double& x = product[i * p + j];
      x = (weight * x - sum[i] * sum[j]) / (weight * weight);
      x = (x - between * contrast[i] * contrast[j]) / (deviation[i] * deviation[j]);
      x = i == j ? x + ridge : x * shrinkage;
    }
  }
  if (!solve_cholesky(product, strength)) return {};
  const double strongest = find_strongest(strength);
  constexpr double smallest = 1e-10;  // of the strongest; less is rounding
  for (double& value : strength)
    if (std::abs(value) <= smallest * strongest) value = 0.0;
  return strength;
}

/// The drawn columns of contrast number c: all, their first and second half, then quarters,
/// and so on.
inline std::pair<std::size_t, std::size_t> find_part(std::size_t c, std::size_t n_drawn) {
  const std::size_t n_parts = std::bit_floor(c + 1), part = c + 1 - n_parts;
  return {n_drawn * part / n_parts, n_drawn * (part + 1) / n_parts};
}

/// Put the columns drawn from number `begin` to `end` in ascending order; `order` gets
/// their places among the drawn.
inline void order_columns(const std::vector<PlaneColumn>& drawn, std::size_t begin, std::size_t end,
                          std::vector<std::size_t>& order, std::vector<PlaneColumn>& columns) {
  order.resize(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return drawn[a].feature < drawn[b].feature; });
  columns.clear();
  for (const std::size_t k : order) columns.push_back(drawn[k]);
}

/// Fisher's strengths of ordered columns, from the products of all drawn ones.
inline std::vector<double> find_fisher_strength(const std::vector<PlaneColumn>& columns,
                                                const std::vector<std::size_t>& order,
                                                const std::vector<double>& product,
                                                std::size_t n_drawn, double weight_target,
                                                double weight_rest) {
  const std::size_t p = order.size();
  std::vector<double> part(p * p);
  for (std::size_t i = 0; i < p; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const auto [low, high] = std::minmax(order[i], order[j]);
      part[i * p + j] = product[high * n_drawn + low];
    }
  return find_fisher(columns, weight_target, weight_rest, part);
}

/// Fill the terms of a plane from its columns (ascending); false if none is left.
inline bool weigh_columns(const std::vector<PlaneColumn>& columns, const Rules& rules,
                          const std::vector<double>& strength, Terms& terms) {
  terms.clear();
  const double strongest = find_strongest(strength);
  if (!(strongest > 0.0) || !std::isfinite(strongest)) return false;
  const auto weight_of = [&](std::size_t i) {
    if (std::abs(strength[i] / strongest) < rules.beta) return 0.0;
    if (rules.contrast == Contrast::mean) return strength[i];
    return strength[i] / std::sqrt(columns[i].moments.variance());
  };
  double largest = 0.0;
  for (std::size_t i = 0; i < columns.size(); ++i)
    largest = std::max(largest, std::abs(weight_of(i)));
  if (!(largest > 0.0) || !std::isfinite(largest)) return false;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const double weight = weight_of(i) / largest;
    const ColumnMoments& column = columns[i].moments;
    if (weight != 0.0) terms.add(columns[i].feature, weight, column.mean(), column.variance());
  }
  return terms.size() > 0;
}

/// Strengths of the contrasts that look at each column on its own.
inline std::vector<double> find_strength(const std::vector<PlaneColumn>& columns,
                                         const Rules& rules) {
  std::vector<double> strength;
  strength.reserve(columns.size());
  for (const PlaneColumn& column : columns) {
    const double variance = column.moments.variance();
    const double contrast = column.moments.clean_contrast(variance);
    strength.push_back(rules.contrast == Contrast::mean ? contrast
                                                        : contrast / std::sqrt(variance));
  }
  return strength;
}

/// Euclidean length of the weights.
inline double find_norm(const Terms& terms) {
  Lanes sum = fill(0.0);
  for (std::int64_t k = 0; k < terms.size(); ++k)
    sum.add(terms.feature[k] % lane_count, terms.weight[k] * terms.weight[k]);
  return std::sqrt(combine(sum));
}

/// Add a column's part of a leaf's line, if it has one.
inline void add_slope(Terms& terms, std::int64_t j, const ColumnMoments& column) {
  const double variance = column.variance();
  if (!(variance > 0.0) || !column.has_contrast(variance)) return;
  const double slope = column.slope();
  if (std::isfinite(slope) && slope != 0.0)  // squares may be so small that they vanish
    terms.add(j, slope, column.mean(), variance);
}

}  // namespace lhtree
