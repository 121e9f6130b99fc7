// Poisson and gamma losses: scores are logarithms of means, in steps of the targets' grid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "grow/losses.hpp"

namespace lhtree::grow {

/// Half the deviance of positive integer targets. A row pulls its score up by y and down by the
/// mean (Poisson), or up by y / mean and down by one (gamma), all in parts of 2**-16.
template <bool is_gamma>
class MeanLoss {
 public:
  static constexpr double hessian_unit = 256.0;  // of the mean of all targets; of one

  double begin_round(const Rows& rows, std::uint64_t, base::Team& team) {
    if (mean_ == 0.0) mean_ = is_gamma ? 1.0 : compute_mean(rows);
    parts_.resize(rows.n);
    std::vector<std::int64_t> most(count_parts(rows.n), 0);
    visit_parts(team, rows.n, [&](std::int64_t begin, std::int64_t end, std::int64_t part) {
      compute_parts(rows, begin, end, parts_.data() + begin);
      for (std::int64_t i = begin; i < end; ++i)
        if (!rows.is_held_out(i))
          most[part] = std::max(most[part], std::abs(get_slope(rows.y[i], parts_[i])));
    });
    const std::int64_t largest = *std::max_element(most.begin(), most.end());
    shift_ = 0;
    while (largest >> shift_ > most_gradient) ++shift_;
    return 1.0 / score_unit;
  }

  template <class Row>
  void compute(const Rows& rows, std::int64_t begin, std::int64_t end, Row* gradient,
               std::uint64_t* loss) const {
    std::int64_t parts[rows_per_block];
    double hessian[rows_per_block];
    compute_parts(rows, begin, end, parts);
    write_losses(rows, begin, end, parts, hessian, loss);
    const std::int64_t half = (std::int64_t{1} << shift_) >> 1;
    for (std::int64_t i = begin; gradient && i < end; ++i) {
      const std::int64_t g = (get_slope(rows.y[i], parts[i - begin]) + half) >> shift_;
      gradient[i - begin] = Row::make(std::clamp(g, -most_gradient, most_gradient),
                                      base::to_integer(hessian[i - begin]), rows.weight_of(i));
    }
  }

  /// A Newton step, or the way to the leaf's optimum where that is shorter.
  void write_values(const Rows& rows, const std::uint32_t* row, std::int64_t n, std::int64_t,
                    std::int64_t, double step, double ridge, std::int32_t* result) const {
    base::Wide of_parts, of_targets;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto w = static_cast<std::uint64_t>(rows.weight_of(row[i]));
      of_parts += base::multiply(static_cast<std::uint64_t>(parts_[row[i]]), w);
      of_targets += base::multiply(is_gamma ? 1 : static_cast<std::uint64_t>(rows.y[row[i]]), w);
    }
    of_targets = base::multiply(of_targets, std::uint64_t{1} << part_bits);
    const double prior = ridge / hessian_unit * mean_ * one;
    const double a = of_parts.to_double() + prior, b = of_targets.to_double() + prior;
    const double up = is_gamma ? a : b, down = is_gamma ? b : a;
    const bool is_newton = is_gamma ? up > down : up < down;
    *result = round_value(step * (is_newton ? (up - down) / a : base::log(up / down)));
  }

 private:
  static constexpr int part_bits = 16;
  static constexpr double one = 1 << part_bits;
  static constexpr double most_parts = 0x1p50;
  static constexpr double most_loss = 0x1p26;

  /// The mean of the targets to train on; one if all are zero.
  static double compute_mean(const Rows& rows) {
    base::Wide sum, weight;
    for (std::int64_t i = 0; i < rows.n; ++i) {
      if (rows.is_held_out(i)) continue;
      const auto w = static_cast<std::uint64_t>(rows.weight_of(i));
      sum += base::multiply(static_cast<std::uint64_t>(rows.y[i]), w);
      weight += {w, 0};
    }
    const double mean = sum.to_double() / weight.to_double();
    return mean > 0.0 ? mean : 1.0;
  }

  /// By how much a row pulls its score down.
  static std::int64_t get_slope(std::int64_t y, std::int64_t parts) {
    constexpr std::int64_t unit = std::int64_t{1} << part_bits;
    return is_gamma ? unit - parts : parts - y * unit;
  }

  /// The mean that a score stands for, or y by it.
  static void compute_parts(const Rows& rows, std::int64_t begin, std::int64_t end,
                            std::int64_t* parts) {
    const std::int64_t n = end - begin;
    const std::int64_t* score = rows.score + begin;
    const std::int32_t* y = rows.y + begin;
    base::run_wide([=]() LHTREE_FLAT {
      for (std::int64_t i = 0; i < n; ++i) {
        const double f = base::to_double(score[i]) * score_unit;
        const double e = is_gamma ? static_cast<double>(y[i]) * base::exp(-f) : base::exp(f);
        const double part = e * one;
        const double kept = part < 1.0 ? 1.0 : part > most_parts ? most_parts : part;
        parts[i] = base::to_integer(base::round_half_up(kept));
      }
    });
  }

  void write_losses(const Rows& rows, std::int64_t begin, std::int64_t end,
                    const std::int64_t* parts, double* hessian, std::uint64_t* loss) const {
    const std::int64_t n = end - begin;
    const std::int64_t* score = rows.score + begin;
    const std::int32_t* y = rows.y + begin;
    const double over_mean = 1.0 / mean_;
    base::run_wide([=]() LHTREE_FLAT {
      constexpr double most_h = most_hessian;
      for (std::int64_t i = 0; i < n; ++i) {
        const double f = base::to_double(score[i]) * score_unit;
        const double t = static_cast<double>(y[i]);
        const double a = base::to_double(parts[i]) * (1.0 / one);
        const double d = base::log(t < 1.0 ? 1.0 : t) - f;
        const double deviance = is_gamma ? (a - 1.0) - d : ((t * d - t) + a) * over_mean;
        const double value = deviance < 0.0 ? 0.0 : deviance > most_loss ? most_loss : deviance;
        loss[i] = static_cast<std::uint64_t>(
            base::to_integer(base::round_half_up(value * (1.0 / score_unit))));
        const double h = base::round_half_up(a * over_mean * hessian_unit);
        hessian[i] = h < 1.0 ? 1.0 : h > most_h ? most_h : h;
      }
    });
  }

  double mean_ = 0.0;  // Poisson: of the targets
  int shift_ = 0;      // bits that gradients drop
  std::vector<std::int64_t> parts_;
};

using PoissonLoss = MeanLoss<false>;
using GammaLoss = MeanLoss<true>;

}  // namespace lhtree::grow
