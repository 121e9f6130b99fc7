// Hyperplanes in closed form: shrunken least squares of the gradient on some columns of a node.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/grid.hpp"
#include "stats/histogram.hpp"

namespace lhtree::split {

constexpr int direction_bits = 12;  // of a column about its mean in the node
constexpr int weight_bits = 15;

/// Integer weights of some columns, and what a missing value of each counts as.
struct Hyperplane {
  std::vector<std::int32_t> column, weight, fill;

  /// The projection of a row on the grid.
  std::int64_t project(const std::int32_t* z) const {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < column.size(); ++k) {
      const std::int32_t value = z[column[k]];
      sum += std::int64_t{weight[k]} * (value == base::gap ? fill[k] : value);
    }
    return sum;
  }
};

/// A hyperplane, and about where the projections of its node lie.
struct Direction {
  Hyperplane hyperplane;
  std::int64_t middle = 0;
  double std = 0.0;

  bool is_found() const { return !hyperplane.column.empty(); }
};

/// Columns of the rows of a node, gathered, with gaps filled.
class NodeColumns {
 public:
  /// Gather some columns; those without two values are left out.
  void gather(const base::GridTable& table, const std::uint32_t* row, std::int64_t n,
              const std::vector<std::int32_t>& columns) {
    n_ = n;
    column_.clear();
    fill_.clear();
    shift_.clear();
    z_.resize(columns.size() * n);
    short_.resize(columns.size() * n);
    gather_rows(table, row, columns);
    std::size_t kept = 0;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      if (kept != k) std::copy_n(z_.data() + k * n, n, z_.data() + kept * n);
      if (center(z_.data() + kept * n, short_.data() + kept * n)) {
        column_.push_back(columns[k]);
        ++kept;
      }
    }
  }

  std::int64_t n_rows() const { return n_; }
  std::size_t size() const { return column_.size(); }
  std::int32_t column(std::size_t k) const { return column_[k]; }
  std::int32_t fill(std::size_t k) const { return fill_[k]; }
  int shift(std::size_t k) const { return shift_[k]; }
  const std::int32_t* z(std::size_t k) const { return z_.data() + k * n_; }
  const std::int16_t* centered(std::size_t k) const { return short_.data() + k * n_; }

 private:
  void gather_rows(const base::GridTable& table, const std::uint32_t* row,
                   const std::vector<std::int32_t>& columns) {
    constexpr std::int64_t ahead = 8;
    for (std::int64_t i = 0; i < n_; ++i) {
#if defined(__GNUC__)
      if (i + ahead < n_) __builtin_prefetch(table.row(row[i + ahead]));
#endif
      const std::int32_t* values = table.row(row[i]);
      for (std::size_t k = 0; k < columns.size(); ++k) z_[k * n_ + i] = values[columns[k]];
    }
  }

  /// Fill the gaps of a column with its mean, and write it about the mean in few bits.
  bool center(std::int32_t* z, std::int16_t* centered) {
    std::int64_t sum = 0, n_present = 0;
    std::int32_t low = std::numeric_limits<std::int32_t>::max(), high = base::gap;
    for (std::int64_t i = 0; i < n_; ++i) {
      const bool is_gap = z[i] == base::gap;
      sum += is_gap ? 0 : z[i];
      n_present += !is_gap;
      high = std::max(high, z[i]);  // a gap is below all others
      low = std::min(low, is_gap ? std::numeric_limits<std::int32_t>::max() : z[i]);
    }
    if (n_present == 0 || low == high) return false;
    const std::int64_t mean = floor_divide(2 * sum + n_present, 2 * n_present);
    const auto fill = static_cast<std::int32_t>(mean);
    const std::int64_t largest = std::max(high - mean, mean - low);
    const int shift = std::max(
        0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(largest))) - direction_bits);
    for (std::int64_t i = 0; i < n_; ++i) {
      z[i] = z[i] == base::gap ? fill : z[i];
      centered[i] = static_cast<std::int16_t>((z[i] - fill) >> shift);
    }
    fill_.push_back(fill);
    shift_.push_back(shift);
    return true;
  }

  static std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); }

  std::int64_t n_ = 0;
  std::vector<std::int32_t> column_, fill_, z_;
  std::vector<int> shift_;
  std::vector<std::int16_t> short_;
};

/// The sum of products of two columns of at most 2**15 each; 2**13 of 12 bits fit a word of 32.
inline std::int64_t multiply_columns(const std::int16_t* a, const std::int16_t* b, std::int64_t n) {
  constexpr std::int64_t block = 64;
  std::int64_t total = 0;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(n, begin + block);
    std::int32_t sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += std::int32_t{a[i]} * b[i];
    total += sum;
  }
  return total;
}

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

/// Computes the direction of a node from its columns and gradients.
class DirectionFinder {
 public:
  explicit DirectionFinder(double shrinkage) : keep_(1.0 - shrinkage) {}

  Direction run(const NodeColumns& columns, const std::uint32_t* row, const stats::Packed* packed) {
    const std::size_t p = columns.size();
    if (p < 2) return {};
    shorten(row, columns.n_rows(), packed);
    measure(columns);
    std::vector<double> std(p), matrix(p * p), x(p);
    for (std::size_t a = 0; a < p; ++a) {
      if (!(moment_[a * p + a] > 0.0)) return {};
      std[a] = std::sqrt(moment_[a * p + a]);
    }
    for (std::size_t a = 0; a < p; ++a) {
      x[a] = right_[a] / std[a];
      for (std::size_t b = 0; b < p; ++b)
        matrix[a * p + b] = a == b ? 1.0 : keep_ * moment_[a * p + b] / (std[a] * std[b]);
    }
    if (!solve(matrix, x)) return {};
    for (std::size_t a = 0; a < p; ++a) x[a] = std::ldexp(x[a] / std[a], -columns.shift(a));
    return round(columns, x);
  }

 private:
  /// Gradients in 15 bits.
  void shorten(const std::uint32_t* row, std::int64_t n, const stats::Packed* packed) {
    gradient_.resize(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t g = stats::unpack(packed[row[i]]).g;
      gradient_[i] = static_cast<std::int16_t>(std::min<std::int64_t>((g + 64) >> 7, 32767));
    }
  }

  /// Centred products of the columns with each other and with the gradient.
  void measure(const NodeColumns& columns) {
    const std::size_t p = columns.size();
    const std::int64_t n = columns.n_rows();
    const auto center = [n](std::int64_t product, std::int64_t a, std::int64_t b) {
      return static_cast<double>(product) -
             static_cast<double>(a) * static_cast<double>(b) / static_cast<double>(n);
    };
    std::vector<std::int64_t> sum(p);
    for (std::size_t a = 0; a < p; ++a) sum[a] = add_up(columns.centered(a), n);
    const std::int64_t total = add_up(gradient_.data(), n);
    moment_.resize(p * p);
    right_.resize(p);
    for (std::size_t a = 0; a < p; ++a) {
      for (std::size_t b = 0; b <= a; ++b)
        moment_[a * p + b] = moment_[b * p + a] =
            center(multiply_columns(columns.centered(a), columns.centered(b), n), sum[a], sum[b]);
      std::int64_t product = 0;
      for (std::int64_t i = 0; i < n; ++i)
        product += std::int32_t{columns.centered(a)[i]} * gradient_[i];
      right_[a] = center(product, sum[a], total);
    }
  }

  static std::int64_t add_up(const std::int16_t* value, std::int64_t n) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += value[i];
    return sum;
  }

  /// Integer weights of 15 bits; terms that round to zero are gone.
  Direction round(const NodeColumns& columns, const std::vector<double>& x) const {
    double largest = 0.0;
    for (const double value : x) largest = std::max(largest, std::abs(value));
    if (!(largest > 0.0)) return {};
    int exponent = 0;
    std::frexp(largest, &exponent);
    constexpr double limit = (1 << weight_bits) - 1;
    Direction result;
    std::vector<std::size_t> kept;
    for (std::size_t a = 0; a < x.size(); ++a) {
      const double rounded = base::round_up(std::ldexp(x[a], weight_bits - exponent));
      const auto weight = static_cast<std::int32_t>(std::clamp(rounded, -limit, limit));
      if (weight == 0) continue;
      kept.push_back(a);
      result.hyperplane.column.push_back(columns.column(a));
      result.hyperplane.weight.push_back(weight);
      result.hyperplane.fill.push_back(columns.fill(a));
      result.middle += std::int64_t{weight} * columns.fill(a);
    }
    if (kept.size() < 2) return {};  // a single column has better cuts of its own
    double variance = 0.0;
    for (std::size_t a = 0; a < kept.size(); ++a)
      for (std::size_t b = 0; b < kept.size(); ++b) {
        const double left = std::ldexp(result.hyperplane.weight[a], columns.shift(kept[a]));
        const double right = std::ldexp(result.hyperplane.weight[b], columns.shift(kept[b]));
        variance = variance + left * right * moment_[kept[a] * x.size() + kept[b]];
      }
    const auto n = static_cast<double>(columns.n_rows());
    result.std = std::sqrt(std::max(variance, 0.0) / n);
    return result;
  }

  double keep_;
  std::vector<std::int16_t> gradient_;
  std::vector<double> moment_, right_;
};

}  // namespace lhtree::split
