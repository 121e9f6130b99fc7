// Losses of boosting: gradients of the rows as integers, and exact sums of losses.
#pragma once

#include <algorithm>
#include <cmath>
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
constexpr std::int64_t most_residual = (std::int64_t{1} << 32) - 1;
constexpr int score_power = 24;  // log-odds and their losses are multiples of 2**-24
constexpr double score_unit = 0x1p-24;

/// Targets and scores of some rows, all integers; no weights count as ones.
struct Rows {
  std::int64_t n = 0;
  const std::int32_t* y = nullptr;
  const std::int64_t* weight = nullptr;
  std::int64_t* score = nullptr;

  std::int64_t weight_of(std::int64_t i) const { return weight ? weight[i] : 1; }
};

/// Gradients of one round, and what a leaf's -g / h is multiplied with.
template <class Row>
struct Gradients {
  std::vector<Row> row;
  typename Row::Sums whole;
  double factor = 1.0;
};

/// Calls look(begin, end, part) for blocks of rows on a team; there are `count_parts` of them.
constexpr std::int64_t rows_per_part = 1 << 13;
inline std::int64_t count_parts(std::int64_t n) { return (n + rows_per_part - 1) / rows_per_part; }
template <class Look>
void visit_parts(base::Team& team, std::int64_t n, const Look& look) {
  team.run(count_parts(n), [&](std::int64_t part) {
    look(part * rows_per_part, std::min(n, (part + 1) * rows_per_part), part);
  });
}

/// Half the squared error of integer targets, of at most 2**32 each.
struct SquaredLoss {
  static constexpr double hessian_unit = 1.0;  // the integer that stands for a hessian of one
  static constexpr double largest_hessian = 1.0;

  template <class Row>
  static void compute(const Rows& rows, base::Team& team, Gradients<Row>& result) {
    std::vector<std::int64_t> most(count_parts(rows.n), 0);
    visit_parts(team, rows.n, [&](std::int64_t begin, std::int64_t end, std::int64_t part) {
      std::int64_t largest = 0;
      for (std::int64_t i = begin; i < end; ++i)
        largest = std::max(largest, std::abs(rows.score[i] - rows.y[i]));
      most[part] = largest;
    });
    const std::int64_t largest = *std::max_element(most.begin(), most.end());
    int shift = 0;
    while (largest >> shift > most_gradient) ++shift;
    const std::int64_t half = (std::int64_t{1} << shift) >> 1;
    visit_parts(team, rows.n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t g = (rows.score[i] - rows.y[i] + half) >> shift;
        result.row[i] = Row::make(std::min(g, most_gradient), 1, rows.weight_of(i));
      }
    });
    result.factor = std::ldexp(1.0, shift);
  }

  /// The losses of the rows from `begin` to `end`.
  static void measure(const Rows& rows, std::int64_t begin, std::int64_t end, std::uint64_t* loss) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto r =
          static_cast<std::uint64_t>(std::min(std::abs(rows.score[i] - rows.y[i]), most_residual));
      loss[i - begin] = r * r;
    }
  }
};

/// Log-loss of targets 0 and 1.
struct LogisticLoss {
  static constexpr double hessian_unit = 1 << (stats::hessian_bits + 2);  // they are at most 1/4
  static constexpr double largest_hessian = (1 << stats::hessian_bits) - 1;
  static constexpr double gradient_unit = 1 << stats::gradient_bits;

  template <class Row>
  static void compute(const Rows& rows, base::Team& team, Gradients<Row>& result) {
    visit_parts(team, rows.n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      constexpr double most = static_cast<double>(most_gradient);
      double slope[rows_per_part], hessian[rows_per_part];
      const std::int64_t n = end - begin;
      const std::int64_t* score = rows.score + begin;
      const std::int32_t* y = rows.y + begin;
      base::run_wide([&]() LHTREE_FLAT {
        for (std::int64_t i = 0; i < n; ++i) {
          const double f = base::to_double(score[i]) * score_unit;
          const double p = 1.0 / (1.0 + base::exp(-f));
          const double g = base::round_half_up((p - static_cast<double>(y[i])) * gradient_unit);
          const double h = base::round_half_up(p * (1.0 - p) * hessian_unit);
          slope[i] = g < -most ? -most : g > most ? most : g;
          hessian[i] = h < 1.0 ? 1.0 : h > largest_hessian ? largest_hessian : h;
        }
      });
      for (std::int64_t i = 0; i < n; ++i)
        result.row[begin + i] = Row::make(base::to_integer(slope[i]), base::to_integer(hessian[i]),
                                          rows.weight_of(begin + i));
    });
    result.factor = std::ldexp(hessian_unit, score_power - stats::gradient_bits);
  }

  /// The losses of the rows from `begin` to `end`, in units of 2**-24.
  static void measure(const Rows& rows, std::int64_t begin, std::int64_t end, std::uint64_t* loss) {
    const std::int64_t n = end - begin;
    const std::int64_t* score = rows.score + begin;
    const std::int32_t* y = rows.y + begin;
    base::run_wide([=]() LHTREE_FLAT {
      for (std::int64_t i = 0; i < n; ++i) {
        const double f = base::to_double(score[i]) * score_unit;
        const double wrong = y[i] == 1 ? -f : f;  // how far the score is on the wrong side
        const double value =
            (wrong > 0.0 ? wrong : 0.0) + base::log(1.0 + base::exp(f < 0.0 ? f : -f));
        loss[i] = static_cast<std::uint64_t>(
            base::to_integer(base::round_half_up(value * (1.0 / score_unit))));
      }
    });
  }
};

/// The sum of losses of some rows.
template <class Loss>
base::Wide sum_losses(const Rows& rows, base::Team& team) {
  std::vector<base::Wide> sum(count_parts(rows.n));
  visit_parts(team, rows.n, [&](std::int64_t begin, std::int64_t end, std::int64_t part) {
    std::uint64_t loss[rows_per_part];
    Loss::measure(rows, begin, end, loss);
    for (std::int64_t i = begin; i < end; ++i)
      sum[part] += base::multiply(loss[i - begin], static_cast<std::uint64_t>(rows.weight_of(i)));
  });
  base::Wide whole;
  for (const base::Wide& each : sum) whole += each;
  return whole;
}

}  // namespace lhtree::grow
