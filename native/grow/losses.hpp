// Losses of boosting: gradients of the rows as integers, and exact losses of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/instructions.hpp"
#include "base/reals.hpp"
#include "base/team.hpp"
#include "base/wide.hpp"
#include "stats/sums.hpp"

namespace lhtree::grow {

constexpr std::int64_t most_gradient = (std::int64_t{1} << stats::gradient_bits) - 1;
constexpr std::int64_t most_hessian = (std::int64_t{1} << stats::hessian_bits) - 1;
constexpr std::int64_t most_residual = (std::int64_t{1} << 32) - 1;
constexpr int score_power = 24;  // log-odds and their losses are multiples of 2**-24
constexpr double score_unit = 0x1p-24;

/// Targets and scores of some rows, all integers; no weights count as ones.
struct Rows {
  std::int64_t n = 0;
  std::int64_t n_outputs = 1;
  const std::int32_t* y = nullptr;
  const std::int64_t* weight = nullptr;
  const std::uint8_t* held_out = nullptr;  // which rows are for validation; null: none
  std::int64_t* score = nullptr;           // [n, n_outputs]

  std::int64_t weight_of(std::int64_t i) const { return weight ? weight[i] : 1; }
  bool is_held_out(std::int64_t i) const { return held_out && held_out[i]; }
};

/// Calls look(begin, end, part) for blocks of rows on a team; there are `count_parts` of them.
constexpr std::int64_t rows_per_part = 1 << 11;
inline std::int64_t count_parts(std::int64_t n) { return (n + rows_per_part - 1) / rows_per_part; }
template <class Look>
void visit_parts(base::Team& team, std::int64_t n, const Look& look) {
  team.run(count_parts(n), [&](std::int64_t part) {
    look(part * rows_per_part, std::min(n, (part + 1) * rows_per_part), part);
  });
}

/// Rows that a loss works on at once: what it notes of them stays in a fast cache.
constexpr std::int64_t rows_per_block = 512;

/// What boosting needs of a loss. Gradients and hessians are integers per unit of weight.
template <class Loss, class Row = stats::PackedRow>
concept LossOfRows = requires(Loss loss, const Loss& fixed, const Rows& rows, std::uint64_t key,
                              base::Team& team, std::int64_t i, Row* gradient, std::uint64_t* value,
                              const std::uint32_t* row, double step, std::int32_t* result) {
  { Loss::hessian_unit } -> std::convertible_to<double>;          // stands for a hessian of one
  { loss.begin_round(rows, key, team) } -> std::same_as<double>;  // returns the unit of leaves
  loss.compute(rows, i, i, gradient, value);  // of a block; `gradient` may be null
  // What a leaf of the rows listed adds to each output, from its sums g and h.
  fixed.write_values(rows, row, i, i, i, step, step, result);
};

constexpr double most_value = 2147483647.0;

/// A real number as what a leaf adds to a score.
inline std::int32_t round_value(double value) {
  return static_cast<std::int32_t>(std::clamp(base::round_half_up(value), -most_value, most_value));
}

/// A Newton step times `step`.
inline std::int32_t compute_newton_value(std::int64_t g, std::int64_t h, double step,
                                         double ridge) {
  const double down = static_cast<double>(h) + ridge;
  return g == 0 || !(down > 0.0) ? 0 : round_value(-step * static_cast<double>(g) / down);
}

/// Losses of one output, whose leaves are Newton steps.
struct NewtonLoss {
  void write_values(const Rows&, const std::uint32_t*, std::int64_t, std::int64_t g, std::int64_t h,
                    double step, double ridge, std::int32_t* result) const {
    *result = compute_newton_value(g, h, step, ridge);
  }
};

/// How far a score is above its target.
inline std::int64_t residual_of(const Rows& rows, std::int64_t i, std::int64_t output = 0) {
  return rows.score[i * rows.n_outputs + output] - rows.y[i];
}

/// Half the squared error of integer targets, of at most 2**32 each.
struct SquaredLoss : NewtonLoss {
  static constexpr double hessian_unit = 1.0;

  /// The largest residual decides how many bits are dropped.
  double begin_round(const Rows& rows, std::uint64_t, base::Team& team) {
    std::vector<std::int64_t> most(count_parts(rows.n), 0);
    visit_parts(team, rows.n, [&](std::int64_t begin, std::int64_t end, std::int64_t part) {
      std::int64_t largest = 0;
      for (std::int64_t i = begin; i < end; ++i)
        if (!rows.is_held_out(i)) largest = std::max(largest, std::abs(residual_of(rows, i)));
      most[part] = largest;
    });
    std::int64_t largest = 0;
    for (const std::int64_t each : most) largest = std::max(largest, each);
    shift_ = 0;
    while (largest >> shift_ > most_gradient) ++shift_;
    return std::ldexp(1.0, shift_);
  }

  template <class Row>
  void compute(const Rows& rows, std::int64_t begin, std::int64_t end, Row* gradient,
               std::uint64_t* loss) const {
    const std::int64_t half = (std::int64_t{1} << shift_) >> 1;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t residual = residual_of(rows, i);
      const auto r = static_cast<std::uint64_t>(std::min(std::abs(residual), most_residual));
      loss[i - begin] = r * r;
      if (!gradient) continue;
      const std::int64_t g = (residual + half) >> shift_;
      gradient[i - begin] =
          Row::make(std::clamp(g, -most_gradient, most_gradient), 1, rows.weight_of(i));
    }
  }

 private:
  int shift_ = 0;
};

/// Log-loss of two classes; scores are log-odds.
struct LogisticLoss : NewtonLoss {
  static constexpr double hessian_unit = 1 << (stats::hessian_bits + 2);  // they are at most 1/4
  static constexpr double gradient_unit = 1 << stats::gradient_bits;
  static constexpr double leaf_unit = hessian_unit * (1 << (score_power - stats::gradient_bits));

  double begin_round(const Rows&, std::uint64_t, base::Team&) { return leaf_unit; }

  template <class Row>
  void compute(const Rows& rows, std::int64_t begin, std::int64_t end, Row* gradient,
               std::uint64_t* loss) const {
    double slope[rows_per_block], hessian[rows_per_block];
    double *s = slope, *d = hessian;
    const std::int64_t n = end - begin;
    const std::int64_t* score = rows.score + begin;
    const std::int32_t* y = rows.y + begin;
    base::run_wide([=]() LHTREE_FLAT {
      constexpr double most_g = most_gradient, most_h = most_hessian;
      for (std::int64_t i = 0; i < n; ++i) {
        const double f = base::to_double(score[i]) * score_unit;
        const double p = 1.0 / (1.0 + base::exp(-f));
        const double g = base::round_half_up((p - static_cast<double>(y[i])) * gradient_unit);
        const double h = base::round_half_up(p * (1.0 - p) * hessian_unit);
        s[i] = g < -most_g ? -most_g : g > most_g ? most_g : g;
        d[i] = h < 1.0 ? 1.0 : h > most_h ? most_h : h;
        const double wrong = y[i] == 1 ? -f : f;  // how far the score is on the wrong side
        const double e = base::exp(f < 0.0 ? f : -f);
        const double value = (wrong > 0.0 ? wrong : 0.0) + base::log(1.0 + e);
        loss[i] = static_cast<std::uint64_t>(
            base::to_integer(base::round_half_up(value * (1.0 / score_unit))));
      }
    });
    for (std::int64_t i = 0; gradient && i < n; ++i)
      gradient[i] = Row::make(base::to_integer(slope[i]), base::to_integer(hessian[i]),
                              rows.weight_of(begin + i));
  }
};

/// Exact sums of losses: of the rows to train on, and of those held out.
struct LossSums {
  base::Wide training, held_out;

  void operator+=(const LossSums& other) {
    training += other.training;
    held_out += other.held_out;
  }
};

/// Compute the gradients of all rows, or none if `gradient` is null; returns their losses.
template <class Row, class Loss>
LossSums compute_gradients(Loss& loss, const Rows& rows, base::Team& team, Row* gradient) {
  std::vector<LossSums> sums(count_parts(rows.n));
  visit_parts(team, rows.n, [&](std::int64_t begin, std::int64_t end, std::int64_t part) {
    std::uint64_t value[rows_per_block];
    for (; begin < end; begin += rows_per_block) {
      const std::int64_t last = std::min(end, begin + rows_per_block);
      loss.compute(rows, begin, last, gradient ? gradient + begin : nullptr, value);
      for (std::int64_t i = begin; i < last; ++i)
        (rows.is_held_out(i) ? sums[part].held_out : sums[part].training) +=
            base::multiply(value[i - begin], static_cast<std::uint64_t>(rows.weight_of(i)));
    }
  });
  LossSums whole;
  for (const LossSums& each : sums) whole += each;
  return whole;
}

}  // namespace lhtree::grow
