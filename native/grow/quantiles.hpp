// Quantile loss of one level or several, absolute error among them: leaves are order statistics.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "grow/losses.hpp"
#include "old/random.hpp"

namespace lhtree::grow {

/// How far a target is above its score, and how often.
struct Residual {
  std::int64_t value = 0, weight = 0;
};

/// The smallest value up to which the values weigh at least `rank`, by histograms of 256 bins, each
/// over a bin of the last; `left` has the values and keeps few of them.
inline std::int64_t select_value(std::vector<Residual>& left, std::int64_t rank) {
  constexpr int bits_at_once = 8;
  const auto by_value = [](const Residual& a, const Residual& b) { return a.value < b.value; };
  const auto [least, most] = std::minmax_element(left.begin(), left.end(), by_value);
  std::int64_t low = least->value;
  int shift = std::bit_width(static_cast<std::uint64_t>(most->value - low));
  while (shift > 0) {
    shift = std::max(0, shift - bits_at_once);
    std::array<std::int64_t, 1 << bits_at_once> weight{};
    for (const Residual& each : left) weight[(each.value - low) >> shift] += each.weight;
    std::int64_t bin = 0;
    while (weight[bin] < rank) rank -= weight[bin++];
    std::erase_if(left, [&](const Residual& each) { return (each.value - low) >> shift != bin; });
    low += bin * (std::int64_t{1} << shift);
  }
  return low;
}

/// Twice the quantile of values: the sum of the smallest value up to which they weigh at least
/// the level, and of the smallest up to which they weigh more.
class QuantileSearch {
 public:
  std::int64_t run(const std::vector<Residual>& values, double level) {
    std::int64_t total = 0;
    for (const Residual& each : values) total += each.weight;
    const double wanted = level * static_cast<double>(total);
    const auto clip = [&](double rank) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(rank), 1, total);
    };
    const std::int64_t first = clip(std::ceil(wanted)), second = clip(std::floor(wanted) + 1.0);
    left_ = values;
    const std::int64_t lower = select_value(left_, first);
    if (first == second) return 2 * lower;
    left_ = values;
    return lower + select_value(left_, second);
  }

 private:
  std::vector<Residual> left_;
};

/// The sum of the quantile losses of ascending levels, with a score for each. Trees are grown on
/// a sum of the levels' gradients with random signs, leaves have the quantiles of the residuals.
class QuantileLoss {
 public:
  static constexpr double hessian_unit = 1.0;

  explicit QuantileLoss(std::vector<double> levels) : level_(std::move(levels)) {
    sign_.assign(level_.size(), 1);
    for (const double level : level_) {
      const auto slope = static_cast<std::int64_t>(base::round_half_up(level * whole));
      slope_.push_back(std::clamp<std::int64_t>(slope, 1, whole - 1));
    }
    while (static_cast<std::int64_t>(level_.size()) * whole >> shift_ > most_gradient) ++shift_;
  }

  double begin_round(const Rows&, std::uint64_t key, base::Team&) {
    const std::uint64_t draws = hash64(key, sign_draws);
    for (std::size_t k = 1; k < sign_.size(); ++k) sign_[k] = hash64(draws, k) >> 63 ? -1 : 1;
    return 1.0;
  }

  template <class Row>
  void compute(const Rows& rows, std::int64_t begin, std::int64_t end, Row* gradient,
               std::uint64_t* loss) const {
    const auto n_levels = static_cast<std::int64_t>(level_.size());
    const std::int64_t half = (std::int64_t{1} << shift_) >> 1;
    std::vector<std::int64_t> sorted(n_levels);
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < n_levels; ++k) {
        const std::int64_t above = sorted[k] = residual_of(rows, i, k);
        sum += sign_[k] * (above > 0 ? whole - slope_[k] : above < 0 ? -slope_[k] : 0);
      }
      std::sort(sorted.begin(), sorted.end());  // predictions do not cross
      std::uint64_t value = 0;
      for (std::int64_t k = 0; k < n_levels; ++k) {
        const std::int64_t far = std::min(std::abs(sorted[k]), most_residual);
        value += static_cast<std::uint64_t>(far * (sorted[k] > 0 ? whole - slope_[k] : slope_[k]));
      }
      loss[i - begin] = value;
      if (!gradient) continue;
      const std::int64_t g = (sum + half) >> shift_;
      gradient[i - begin] =
          Row::make(std::clamp(g, -most_gradient, most_gradient), 1, rows.weight_of(i));
    }
  }

  void write_values(const Rows& rows, const std::uint32_t* row, std::int64_t n, std::int64_t,
                    std::int64_t, double step, double, std::int32_t* result) const {
    std::vector<Residual> residual(n);
    QuantileSearch search;
    for (std::size_t k = 0; k < level_.size(); ++k) {
      for (std::int64_t i = 0; i < n; ++i)
        residual[i] = {-residual_of(rows, row[i], static_cast<std::int64_t>(k)),
                       rows.weight_of(row[i])};
      const std::int64_t twice = search.run(residual, level_[k]);
      result[k] = round_value(step * (0.5 * static_cast<double>(twice)));
    }
  }

 private:
  static constexpr std::int64_t whole = 1 << 20;  // slopes of losses are multiples of 2**-20
  static constexpr std::uint64_t sign_draws = ~std::uint64_t{8};  // never that of a row or column

  std::vector<double> level_;
  std::vector<std::int64_t> slope_, sign_;
  int shift_ = 0;  // bits that gradients drop
};

}  // namespace lhtree::grow
