// Gradient boosting: trees one after the other, each on the gradients that those before left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/reals.hpp"
#include "grow/tree.hpp"

namespace lhtree::grow {

constexpr std::int64_t most_gradient = (std::int64_t{1} << stats::gradient_bits) - 1;
constexpr double most_slope = static_cast<double>(most_gradient);
constexpr double most_curve = (1 << stats::hessian_bits) - 1;
constexpr double most_value = 2147483647.0;
constexpr int score_power = 24;  // log-odds are multiples of 2**-24
constexpr double score_unit = 0x1p-24;
constexpr double hessian_unit = 1 << (stats::hessian_bits + 2);  // hessians are at most 1/4

/// Gradients of one round as integers, and what a leaf's -g / h is multiplied with.
struct Gradients {
  std::vector<stats::Packed> packed;
  stats::Sums whole;
  double factor = 1.0;
};

/// Squared error of integer targets: f - y in 22 bits, hessians of one.
class SquaredLoss {
 public:
  SquaredLoss(const std::int64_t* y, std::int64_t n) : y_(y), n_(n) {}

  static constexpr double unit = 1.0;  // of a hessian

  void compute(const std::int64_t* score, Gradients& result) const {
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < n_; ++i) most = std::max(most, std::abs(score[i] - y_[i]));
    int shift = 0;
    while (most >> shift > most_gradient) ++shift;
    const std::int64_t half = (std::int64_t{1} << shift) >> 1;
    result.packed.resize(n_);
    result.whole = {};
    for (std::int64_t i = 0; i < n_; ++i) {
      const std::int64_t g = std::min((score[i] - y_[i] + half) >> shift, most_gradient);
      result.packed[i] = stats::pack(g, 1);
      result.whole.g += g;
    }
    result.whole.h = n_;
    result.factor = std::ldexp(1.0, shift);
  }

 private:
  const std::int64_t* y_;
  std::int64_t n_;
};

/// Log-loss of targets 0 and 1.
class LogisticLoss {
 public:
  LogisticLoss(const std::int64_t* y, std::int64_t n) : y_(y), n_(n), slope_(n), hessian_(n) {}

  static constexpr double unit = hessian_unit;

  void compute(const std::int64_t* score, Gradients& result) {
    double most = 0.0;
    for (std::int64_t i = 0; i < n_; ++i) {
      const double f = base::to_double(score[i]) * score_unit;
      const double p = 1.0 / (1.0 + base::exp(-f));
      slope_[i] = p - base::to_double(y_[i]);
      hessian_[i] = p * (1.0 - p) * hessian_unit;
    }
    for (std::int64_t i = 0; i < n_; ++i) most = std::max(most, std::abs(slope_[i]));
    int exponent = 0;
    std::frexp(most, &exponent);
    const int power = std::min(stats::gradient_bits - exponent, 1000);
    const double unit = std::ldexp(1.0, power);
    result.packed.resize(n_);
    result.whole = {};
    for (std::int64_t i = 0; i < n_; ++i) {
      const double g = std::clamp(base::round_up(slope_[i] * unit), -most_slope, most_slope);
      const double h = std::clamp(base::round_up(hessian_[i]), 1.0, most_curve);
      const std::int64_t gi = base::to_integer(g), hi = base::to_integer(h);
      result.packed[i] = stats::pack(gi, hi);
      result.whole.g += gi;
      result.whole.h += hi;
    }
    result.factor = std::ldexp(hessian_unit, score_power - power);
  }

 private:
  const std::int64_t* y_;
  std::int64_t n_;
  std::vector<double> slope_, hessian_;
};

/// What a leaf adds to the score: a Newton step times `factor`, as an integer.
inline std::int32_t compute_leaf_value(const stats::Sums& sums, double factor, double ridge) {
  const double h = static_cast<double>(sums.h) + ridge;
  if (!(h > 0.0)) return 0;
  const double value = base::round_up(-factor * static_cast<double>(sums.g) / h);
  return static_cast<std::int32_t>(std::clamp(value, -most_value, most_value));
}

/// A grown tree: the nodes in the order of their growth, with the values of leaves.
struct BoostedTree {
  std::vector<Node> node;
  std::vector<std::int32_t> value;  // [n_nodes], 0 at splits
};

struct BoostingPlan {
  std::int64_t n_rounds = 100;
  double learning_rate = 0.1;
  double l2_regularization = 0.0;
  double least_hessian = 1.0;
  std::uint64_t seed = 0;
  TreeSize size;
  HyperplaneSettings hyperplanes;
};

/// Add rounds to the scores of the rows.
template <class Loss>
std::vector<BoostedTree> boost(const base::BinnedTable& table, const base::GridTable& grid,
                               Loss& loss, std::int64_t* score, const BoostingPlan& plan,
                               const StopFlag& stop) {
  const double ridge = plan.l2_regularization * Loss::unit;
  TreeGrower grower(table, grid, {ridge, plan.least_hessian * Loss::unit}, plan.size,
                    plan.hyperplanes);
  std::vector<BoostedTree> trees;
  Gradients gradients;
  for (std::int64_t round = 0; round < plan.n_rounds; ++round) {
    loss.compute(score, gradients);
    const std::uint64_t key = hash64(plan.seed, static_cast<std::uint64_t>(round));
    const std::vector<Node>& nodes =
        grower.grow(gradients.packed.data(), gradients.whole, key, stop);
    BoostedTree& tree = trees.emplace_back(BoostedTree{nodes, {}});
    tree.value.assign(nodes.size(), 0);
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (nodes[k].left >= 0) continue;
      tree.value[k] =
          compute_leaf_value(nodes[k].sums, plan.learning_rate * gradients.factor, ridge);
      for (std::int64_t i = nodes[k].begin; i < nodes[k].end; ++i)
        score[grower.rows()[i]] += tree.value[k];
    }
  }
  return trees;
}

}  // namespace lhtree::grow
