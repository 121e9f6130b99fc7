// Directions in closed form: shrunken least squares of the gradient on some columns of a node.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/grid.hpp"
#include "base/instructions.hpp"
#include "base/reals.hpp"
#include "base/table.hpp"
#include "split/constraints.hpp"
#include "split/split.hpp"

namespace lhtree::split {

constexpr int direction_bits = 12;  // of a column about its mean in the node
constexpr int short_bits = 15;      // of a gradient
constexpr int coefficient_bits = 15;
constexpr int direction_weight_bits = 31;  // of the weights of all rows of a node
static_assert(2 * direction_bits + direction_weight_bits < 63, "products of columns fit a word");
static_assert(direction_bits + short_bits + direction_weight_bits < 63, "and with gradients");
static_assert(coefficient_bits + base::grid_bits + 7 < 53, "projections are below 2**53");

/// About where the projections of a node on a hyperplane lie.
struct Direction {
  Hyperplane hyperplane;
  std::int64_t middle = 0;
  double std = 0.0;
};

/// Columns of some rows side by side, gaps filled, and about their means in few bits.
class NodeColumns {
 public:
  /// Gather columns; those without two values are left out. `weight` is null where all are one.
  template <base::EncodedTable Table>
  void gather(const Table& table, const std::uint32_t* row, std::int64_t n,
              const std::vector<std::int32_t>& columns, const std::int64_t* weight) {
    n_ = n;
    const auto p = static_cast<std::int64_t>(columns.size());
    column_.clear();
    center_.clear();
    fill_.clear();
    shift_.clear();
    z_.resize(p * n);
    short_.resize(p * n);
    constexpr std::int64_t block = 16;  // values of a column that fill a line of the cache
    std::int32_t values[block][most_terms];
    for (std::int64_t begin = 0; begin < n; begin += block) {
      const std::int64_t m = std::min(block, n - begin);
      for (std::int64_t i = 0; i < m; ++i) {
        if (begin + i + block < n) table.prefetch_values(row[begin + i + block]);
        table.gather(row[begin + i], columns.data(), p, values[i]);
      }
      for (std::int64_t k = 0; k < p; ++k)
        for (std::int64_t i = 0; i < m; ++i) z_[k * n + begin + i] = values[i][k];
    }
    std::int64_t kept = 0;
    for (std::int64_t k = 0; k < p; ++k) {
      if (kept != k) std::copy_n(z_.data() + k * n, n, z_.data() + kept * n);
      const base::ColumnInfo& column = table.layout.column[columns[k]];
      if (!write_about_mean(z_.data() + kept * n, short_.data() + kept * n, weight, column))
        continue;
      column_.push_back(columns[k]);
      ++kept;
    }
  }

  std::int64_t n_rows() const { return n_; }
  std::int64_t size() const { return static_cast<std::int64_t>(column_.size()); }
  std::int32_t column(std::int64_t k) const { return column_[k]; }
  std::int32_t center(std::int64_t k) const { return center_[k]; }
  std::int32_t fill(std::int64_t k) const { return fill_[k]; }
  int shift(std::int64_t k) const { return shift_[k]; }
  const std::int32_t* z(std::int64_t k) const { return z_.data() + k * n_; }
  const std::int16_t* centered(std::int64_t k) const { return short_.data() + k * n_; }

 private:
  struct Facts {
    std::int64_t sum = 0, weight = 0;
    std::int32_t low = std::numeric_limits<std::int32_t>::max(), high = base::gap;
  };

  /// Fill the gaps of a column with its mean, and write it about that in few bits; false if all
  /// present values are equal.
  bool write_about_mean(std::int32_t* z, std::int16_t* centered, const std::int64_t* weight,
                        const base::ColumnInfo& column) {
    const Facts facts = weight ? sum_weighted(z, weight) : sum(z);
    if (facts.weight == 0 || facts.low == facts.high) return false;
    const std::int64_t mean = floor_divide(2 * facts.sum + facts.weight, 2 * facts.weight);
    const auto center = static_cast<std::int32_t>(mean);
    const std::int64_t largest = std::max(facts.high - mean, mean - facts.low);
    const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(largest)));
    const int shift = std::max(0, bits - direction_bits);
    const std::int64_t n = n_;
    base::run_wide([=]() LHTREE_FLAT {
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t value = z[i] == base::gap ? center : z[i];
        z[i] = value;
        centered[i] = static_cast<std::int16_t>((value - center) >> shift);
      }
    });
    center_.push_back(center);
    fill_.push_back(column.has_gaps ? center : column.fill);
    shift_.push_back(shift);
    return true;
  }

  Facts sum(const std::int32_t* z) const {
    Facts facts;
    Facts* result = &facts;
    const std::int64_t n = n_;
    base::run_wide([=]() LHTREE_FLAT {
      // As unsigned numbers less that of the lowest value, gaps are above all others.
      constexpr std::uint32_t first = 0x80000001u;
      std::uint32_t low = 0xFFFFFFFFu;
      for (std::int64_t i = 0; i < n; ++i)
        low = std::min(low, static_cast<std::uint32_t>(z[i]) - first);
      std::int32_t high = base::gap;
      for (std::int64_t i = 0; i < n; ++i) high = std::max(high, z[i]);
      std::int32_t n_gaps = 0;
      for (std::int64_t i = 0; i < n; ++i) n_gaps += z[i] == base::gap;
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += z[i] == base::gap ? 0 : z[i];
      *result = {sum, n - n_gaps, static_cast<std::int32_t>(low + first), high};
    });
    return facts;
  }

  Facts sum_weighted(const std::int32_t* z, const std::int64_t* weight) const {
    Facts facts;
    for (std::int64_t i = 0; i < n_; ++i) {
      if (z[i] == base::gap) continue;
      facts.sum += weight[i] * z[i];
      facts.weight += weight[i];
      facts.low = std::min(facts.low, z[i]);
      facts.high = std::max(facts.high, z[i]);
    }
    return facts;
  }

  static std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); }

  std::int64_t n_ = 0;
  std::vector<std::int32_t> column_, center_, fill_, z_;
  std::vector<int> shift_;
  std::vector<std::int16_t> short_;
};

/// Centred products of the columns of a node with each other and with the gradient.
class Moments {
 public:
  /// `gradient` takes 15 bits; `weight` is null where all are one.
  void measure(const NodeColumns& columns, const std::int16_t* gradient,
               const std::int64_t* weight) {
    p_ = columns.size();
    const std::int64_t n = columns.n_rows();
    moment_.resize(p_ * p_);
    right_.resize(p_);
    std::vector<std::int64_t> sum(p_);
    std::int64_t total = 0;
    weight_ = n;
    if (weight) {
      weight_ = 0;
      for (std::int64_t i = 0; i < n; ++i) weight_ += weight[i];
    }
    const auto add_up = [&](const std::int16_t* a) {
      return weight ? dot(a, weight, n) : add(a, n);
    };
    total = add_up(gradient);
    for (std::int64_t a = 0; a < p_; ++a) sum[a] = add_up(columns.centered(a));
    std::vector<std::int64_t> weighted(weight ? n : 0);
    for (std::int64_t a = 0; a < p_; ++a) {
      const std::int16_t* left = columns.centered(a);
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(weighted.size()); ++i)
        weighted[i] = weight[i] * left[i];
      for (std::int64_t b = 0; b <= a; ++b) {
        const std::int16_t* right = columns.centered(b);
        const std::int64_t product =
            weight ? dot(right, weighted.data(), n) : dot<2 * direction_bits>(left, right, n);
        moment_[a * p_ + b] = moment_[b * p_ + a] = center(product, sum[a], sum[b]);
      }
      const std::int64_t product = weight ? dot(gradient, weighted.data(), n)
                                          : dot<direction_bits + short_bits>(left, gradient, n);
      right_[a] = center(product, sum[a], total);
    }
  }

  std::int64_t size() const { return p_; }
  double operator()(std::int64_t a, std::int64_t b) const { return moment_[a * p_ + b]; }
  double with_gradient(std::int64_t a) const { return right_[a]; }
  double weight() const { return static_cast<double>(weight_); }

 private:
  double center(std::int64_t product, std::int64_t a, std::int64_t b) const {
    return static_cast<double>(product) -
           static_cast<double>(a) * static_cast<double>(b) / static_cast<double>(weight_);
  }

  static std::int64_t add(const std::int16_t* a, std::int64_t n) {
    std::int64_t result = 0;
    std::int64_t* out = &result;
    base::run_wide([=]() LHTREE_FLAT {
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += a[i];
      *out = sum;
    });
    return result;
  }

  /// The sum of products of `bits` bits; those of a block fit a short word.
  template <int bits>
  static std::int64_t dot(const std::int16_t* a, const std::int16_t* b, std::int64_t n) {
    constexpr std::int64_t block = std::int64_t{1} << (30 - bits);  // a product may be -2**bits
    std::int64_t result = 0;
    std::int64_t* out = &result;
    base::run_wide([=]() LHTREE_FLAT {
      std::int64_t total = 0, begin = 0;
      for (; begin + block <= n; begin += block) {
        std::int32_t sum = 0;
        for (std::int64_t i = 0; i < block; ++i)
          sum += std::int32_t{a[begin + i]} * std::int32_t{b[begin + i]};
        total += sum;
      }
      for (; begin < n; ++begin) total += std::int32_t{a[begin]} * std::int32_t{b[begin]};
      *out = total;
    });
    return result;
  }

  static std::int64_t dot(const std::int16_t* a, const std::int64_t* b, std::int64_t n) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  }

  std::int64_t p_ = 0, weight_ = 0;
  std::vector<double> moment_, right_;
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
