// Gradient boosting: trees one after the other, each on the gradients that those before left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/columns.hpp"
#include "base/reals.hpp"
#include "grow/losses.hpp"
#include "grow/tree.hpp"
#include "model/ensemble.hpp"

namespace lhtree::grow {

constexpr double most_value = 2147483647.0;

/// What a leaf adds to the score: a Newton step times `factor`, as an integer.
template <class Sums>
std::int32_t compute_leaf_value(const Sums& sums, double factor, double ridge) {
  const double h = static_cast<double>(sums.h) + ridge;
  if (sums.g == 0 || !(h > 0.0)) return 0;
  const double value = base::round_half_up(-factor * static_cast<double>(sums.g) / h);
  return static_cast<std::int32_t>(std::clamp(value, -most_value, most_value));
}

struct BoostingPlan {
  std::int64_t first_round = 0, n_rounds = 100;
  std::int64_t patience = 0;  // rounds without a lower validation loss; 0: never stop early
  double learning_rate = 0.1;
  double l2_regularization = 0.0;
  double min_hessian = 1.0;     // of a leaf
  std::int64_t min_weight = 0;  // of a leaf, in units of row weights
  double unit_weight = 1.0;     // what a row of weight one weighs
  std::uint64_t seed = 0;
  TreeSize size;
  split::HyperplaneSettings hyperplanes;
};

/// Trees, and the loss before and after each round, summed over the rows.
struct Boosted {
  model::Ensemble trees;
  std::vector<double> training_loss, validation_loss;
};

/// Adds rounds to the scores of the rows.
template <class Loss, class Row, base::EncodedTable Table>
class Booster {
 public:
  using Sums = typename Row::Sums;

  Booster(const std::vector<base::Column>& columns, const Table& table, const Rows& rows,
          const Table& held_out, const Rows& held_out_rows, const BoostingPlan& plan,
          base::Team& team, const StopFlag& stop)
      : columns_(columns),
        table_(table),
        held_out_(held_out),
        rows_(rows),
        held_out_rows_(held_out_rows),
        plan_(plan),
        ridge_(plan.l2_regularization * Loss::hessian_unit * plan.unit_weight),
        team_(team),
        grower_(table, make_settings(plan, ridge_), team, stop) {
    gradients_.row.resize(rows.n);
    all_.resize(rows.n);
    std::iota(all_.begin(), all_.end(), 0u);
  }

  /// Add rounds; with patience, keep those up to the lowest validation loss.
  Boosted run() {
    Boosted result;
    note_losses(result);
    double lowest = result.validation_loss.back();
    std::int64_t best = 0;  // rounds at the lowest validation loss
    for (std::int64_t round = 0; round < plan_.n_rounds; ++round) {
      add_tree(round, result.trees);
      note_losses(result);
      if (result.validation_loss.back() < lowest) {
        lowest = result.validation_loss.back();
        best = round + 1;
      }
      if (plan_.patience > 0 && round + 1 - best >= plan_.patience) break;
    }
    if (plan_.patience > 0) result.trees.keep(best);
    return result;
  }

 private:
  static TreeSettings make_settings(const BoostingPlan& plan, double ridge) {
    TreeSettings settings;
    settings.size = plan.size;
    const double least = plan.min_hessian * Loss::hessian_unit * plan.unit_weight;
    settings.limits = {ridge, std::max(1.0, least), plan.min_weight};
    settings.hessian_of_row = Loss::hessian_unit * plan.unit_weight;
    settings.hyperplanes = plan.hyperplanes;
    return settings;
  }

  void note_losses(Boosted& result) {
    result.training_loss.push_back(sum_losses<Loss>(rows_, team_).to_double());
    result.validation_loss.push_back(sum_losses<Loss>(held_out_rows_, team_).to_double());
  }

  void add_tree(std::int64_t round, model::Ensemble& trees) {
    Loss::compute(rows_, team_, gradients_);
    std::vector<Sums> parts(count_parts(rows_.n));
    visit_parts(team_, rows_.n, [&](std::int64_t begin, std::int64_t end, std::int64_t part) {
      for (std::int64_t i = begin; i < end; ++i) gradients_.row[i].add_to(parts[part]);
    });
    Sums whole;
    for (const Sums& each : parts) whole += each;
    const std::uint64_t key =
        hash64(plan_.seed, static_cast<std::uint64_t>(plan_.first_round + round));
    const auto& nodes = grower_.grow(all_, gradients_.row.data(), whole, key);
    const double factor = plan_.learning_rate * gradients_.factor;
    const auto get_value = [&](const Node<Sums>& node) {
      return compute_leaf_value(node.sums, factor, ridge_);
    };
    for (const Node<Sums>& node : nodes) {
      if (node.left >= 0) continue;
      const std::int32_t value = get_value(node);
      for (std::int64_t i = node.begin; i < node.end; ++i) rows_.score[grower_.rows()[i]] += value;
    }
    add_to_held_out(nodes, get_value);
    const auto get_weight = [](const Node<Sums>& node) {
      if constexpr (Row::has_weight) return node.sums.w;
      return node.n_rows();
    };
    const split::Limits limits = make_settings(plan_, ridge_).limits;
    const auto get_gain = [&](const Node<Sums>& node) {
      return node.split.score - split::compute_score(node.sums, limits);
    };
    trees.append(nodes, columns_, get_value, get_weight, get_gain);
  }

  template <class GetValue>
  void add_to_held_out(const std::vector<Node<Sums>>& nodes, const GetValue& get_value) {
    if (held_out_rows_.n == 0) return;
    std::vector<std::int32_t> value(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k) value[k] = get_value(nodes[k]);
    visit_parts(team_, held_out_rows_.n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t k = 0;
        while (nodes[k].left >= 0) k = nodes[k].left + !nodes[k].split.goes_left(held_out_, i);
        held_out_rows_.score[i] += value[k];
      }
    });
  }

  const std::vector<base::Column>& columns_;
  const Table& table_;
  const Table& held_out_;
  Rows rows_, held_out_rows_;
  BoostingPlan plan_;
  double ridge_;
  base::Team& team_;
  TreeGrower<Row, Table> grower_;
  Gradients<Row> gradients_;
  std::vector<std::uint32_t> all_;
};

}  // namespace lhtree::grow
