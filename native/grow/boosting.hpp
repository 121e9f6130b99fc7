// Gradient boosting: trees one after the other, each on the gradients that those before left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/columns.hpp"
#include "base/reals.hpp"
#include "grow/leaf_bounds.hpp"
#include "grow/losses.hpp"
#include "grow/tree.hpp"
#include "model/ensemble.hpp"

namespace lhtree::grow {

struct BoostingPlan {
  std::int64_t first_round = 0, n_rounds = 100;
  std::int64_t patience = 0;   // rounds without a lower validation loss; 0: never stop early
  double tolerance = 0.0;      // by which a sum of losses must be lower to count
  double learning_rate = 0.1;  // of the first round
  double rate_growth = 0.0;    // what each round adds to it, up to
  double most_rate = 0.1;
  double subsample = 1.0;  // share of the rows that each round draws
  double l2_regularization = 0.0;
  double min_hessian = 1.0;              // of a leaf
  std::int64_t min_weight = 0;           // of a leaf, in units of row weights
  double unit_weight = 1.0;              // what a row of weight one weighs
  double min_gain = 0.0;                 // of a split, in units of the gain of one on noise
  std::int64_t hyperplane_interval = 1;  // rounds from one whose tree has hyperplanes to the next
  std::uint64_t seed = 0;
  std::vector<double> levels;  // of quantile loss, one per output
  TreeSize size;
  std::int64_t max_features = 0;  // columns that a node draws for its single splits; 0: all
  split::HyperplaneSettings hyperplanes;
  split::Constraints constraints;  // trends where there is one score per row
};

/// Trees, and the loss before and after each round, summed over the rows.
struct Boosted {
  model::Ensemble trees;
  std::vector<double> training_loss, validation_loss;
};

/// Adds rounds to the scores of the rows.
template <class Loss, class Row, base::EncodedTable Table>
requires LossOfRows<Loss, Row>
class Booster {
 public:
  using Sums = typename Row::Sums;

  /// Some of `rows` may be held out for validation; all of `validation` are.
  Booster(Loss loss, const std::vector<base::Column>& columns, const Table& table, const Rows& rows,
          const Table& validation_table, const Rows& validation, const BoostingPlan& plan,
          base::Team& team, const StopFlag& stop)
      : loss_(std::move(loss)),
        columns_(columns),
        table_(table),
        validation_table_(validation_table),
        rows_(rows),
        validation_(validation),
        plan_(plan),
        ridge_(plan.l2_regularization * Loss::hessian_unit * plan.unit_weight),
        team_(team),
        grower_(table, make_settings(plan, ridge_), team, stop) {
    gradient_.resize(rows.n);
    drawn_.reserve(rows.n);
  }

  /// Add rounds; with patience, keep those up to the lowest validation loss.
  Boosted run() {
    Boosted result;
    std::int64_t best = 0;  // rounds at the lowest validation loss
    for (std::int64_t round = 0;; ++round) {
      const bool is_last = round == plan_.n_rounds;
      const std::uint64_t key =
          hash64(plan_.seed, static_cast<std::uint64_t>(plan_.first_round + round));
      const double unit = loss_.begin_round(rows_, key, team_);
      note_losses(compute_gradients(loss_, rows_, team_, is_last ? nullptr : gradient_.data()),
                  result);
      const double least = result.validation_loss[best] - plan_.tolerance;
      if (result.validation_loss.back() < least) best = round;
      if (is_last || (plan_.patience > 0 && round - best >= plan_.patience)) break;
      add_tree(plan_.first_round + round, key, compute_rate(round) * unit, result.trees);
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
    settings.min_gain = plan.min_gain;
    settings.hessian_of_row = Loss::hessian_unit * plan.unit_weight;
    settings.max_features = plan.max_features;
    settings.hyperplanes = plan.hyperplanes;
    settings.constraints = plan.constraints;
    return settings;
  }

  double compute_rate(std::int64_t round) const {
    const auto number = static_cast<double>(plan_.first_round + round);
    return std::min(plan_.learning_rate + plan_.rate_growth * number, plan_.most_rate);
  }

  void note_losses(LossSums sums, Boosted& result) {
    constexpr Row* no_gradients = nullptr;
    sums.held_out += compute_gradients(loss_, validation_, team_, no_gradients).training;
    result.training_loss.push_back(sums.training.to_double());
    result.validation_loss.push_back(sums.held_out.to_double());
  }

  void add_tree(std::int64_t round, std::uint64_t key, double step, model::Ensemble& trees) {
    draw_rows(key);
    const DrawnSums drawn = sum_drawn();
    const TreeDraw draw{key, estimate_noise(drawn), round % plan_.hyperplane_interval == 0};
    const auto& nodes = grower_.grow(drawn_, gradient_.data(), drawn.sums, draw);
    compute_values(nodes, step);
    add_to_drawn(nodes);
    add_by_walking(nodes, table_, rows_, undrawn_.data(),
                   static_cast<std::int64_t>(undrawn_.size()));
    add_by_walking(nodes, validation_table_, validation_, nullptr, validation_.n);
    append(nodes, trees);
  }

  /// Draw each row to train on with the probability `subsample`, by a hash of its number; all of
  /// them if that draws none.
  void draw_rows(std::uint64_t key) {
    const bool draws_all = plan_.subsample >= 1.0;
    if (draws_all && !drawn_.empty()) return;
    const std::uint64_t draws = hash64(key, row_draws);
    const auto most = draws_all ? 0 : static_cast<std::uint64_t>(plan_.subsample * 0x1p64);
    divide_rows([&](std::uint64_t i) { return draws_all || hash64(draws, i) < most; });
    if (drawn_.empty()) divide_rows([](std::uint64_t) { return true; });
  }

  template <class IsDrawn>
  void divide_rows(const IsDrawn& is_drawn) {
    drawn_.clear();
    undrawn_.clear();
    for (std::int64_t i = 0; i < rows_.n; ++i) {
      const bool takes_part = !rows_.is_held_out(i) && is_drawn(static_cast<std::uint64_t>(i));
      (takes_part ? drawn_ : undrawn_).push_back(static_cast<std::uint32_t>(i));
    }
  }

  /// Some rows of a leaf.
  struct Piece {
    std::int64_t leaf, begin, end;
  };

  /// Sums over the rows that a tree grows from, also of squared gradients times weights.
  struct DrawnSums {
    Sums sums;
    base::Wide squares;
  };

  DrawnSums sum_drawn() {
    const auto n = static_cast<std::int64_t>(drawn_.size());
    std::vector<DrawnSums> parts(count_parts(n));
    visit_parts(team_, n, [&](std::int64_t begin, std::int64_t end, std::int64_t part) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Row& each = gradient_[drawn_[i]];
        const auto g = static_cast<std::uint64_t>(std::abs(each.gradient()));
        each.add_to(parts[part].sums);
        parts[part].squares += base::multiply(g * g, static_cast<std::uint64_t>(each.weight()));
      }
    });
    DrawnSums whole;
    for (const DrawnSums& each : parts) {
      whole.sums += each.sums;
      whole.squares += each.squares;
    }
    return whole;
  }

  /// The gain of a split on average if gradients were noise: their mean square by the hessian.
  double estimate_noise(const DrawnSums& drawn) const {
    return drawn.squares.to_double() / static_cast<double>(drawn.sums.h) * plan_.unit_weight;
  }

  /// What the leaves add to the scores, in the order of the nodes. Large ones come first, so that
  /// no thread begins one when the others are done.
  void compute_values(const std::vector<Node<Sums>>& nodes, double step) {
    const bool is_monotone = plan_.constraints.is_monotone();
    value_.assign(nodes.size() * rows_.n_outputs, 0);
    wanted_.clear();
    for (std::size_t k = 0; k < nodes.size(); ++k)
      if (nodes[k].left < 0 || is_monotone) wanted_.push_back(static_cast<std::int64_t>(k));
    std::sort(wanted_.begin(), wanted_.end(),
              [&](auto a, auto b) { return nodes[a].n_rows() > nodes[b].n_rows(); });
    team_.run(static_cast<std::int64_t>(wanted_.size()), [&](std::int64_t i) {
      const std::int64_t k = wanted_[i];
      const Node<Sums>& node = nodes[k];
      loss_.write_values(rows_, grower_.rows().data() + node.begin, node.n_rows(), node.sums.g,
                         node.sums.h, step, ridge_, values_of(k));
    });
    if (is_monotone) clip_values(nodes, plan_.constraints, table_.layout, value_);
  }

  std::int32_t* values_of(std::int64_t node) { return value_.data() + node * rows_.n_outputs; }

  void add_to_score(const Rows& rows, std::int64_t row, std::int64_t node) {
    const std::int32_t* value = values_of(node);
    std::int64_t* score = rows.score + row * rows.n_outputs;
    for (std::int64_t c = 0; c < rows.n_outputs; ++c) score[c] += value[c];
  }

  /// The first parts of all leaves come first: a thread then has about the rows whose gradients
  /// it computes.
  void add_to_drawn(const std::vector<Node<Sums>>& nodes) {
    const std::int64_t n_parts = team_.size() > 1 ? 2 * team_.size() : 1;
    piece_.clear();
    for (std::int64_t part = 0; part < n_parts; ++part)
      for (std::size_t k = 0; k < nodes.size(); ++k) {
        const std::int64_t first = nodes[k].begin, n = nodes[k].n_rows();
        if (nodes[k].left < 0)
          piece_.push_back({static_cast<std::int64_t>(k), first + n * part / n_parts,
                            first + n * (part + 1) / n_parts});
      }
    team_.run(static_cast<std::int64_t>(piece_.size()), [&](std::int64_t p) {
      for (std::int64_t i = piece_[p].begin; i < piece_[p].end; ++i)
        add_to_score(rows_, grower_.rows()[i], piece_[p].leaf);
    });
  }

  /// Send rows down the tree and add to their scores; `row` may be null for all.
  void add_by_walking(const std::vector<Node<Sums>>& nodes, const Table& table, const Rows& rows,
                      const std::uint32_t* row, std::int64_t n) {
    visit_parts(team_, n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t each = row ? row[i] : i;
        std::int64_t k = 0;
        while (nodes[k].left >= 0) k = nodes[k].left + !nodes[k].split.goes_left(table, each);
        add_to_score(rows, each, k);
      }
    });
  }

  void append(const std::vector<Node<Sums>>& nodes, model::Ensemble& trees) {
    const auto get_weight = [](const Node<Sums>& node) {
      if constexpr (Row::has_weight) return node.sums.w;
      return node.n_rows();
    };
    const split::Limits limits{ridge_, 0.0, 0};
    const auto get_gain = [&](const Node<Sums>& node) {
      return plan_.constraints.is_monotone()
                 ? node.split.score
                 : node.split.score - split::compute_score(node.sums, limits);
    };
    trees.append(nodes, columns_, value_.data(), rows_.n_outputs, get_weight, get_gain);
  }

  static constexpr std::uint64_t row_draws = ~std::uint64_t{3};  // never that of a row or column

  Loss loss_;
  const std::vector<base::Column>& columns_;
  const Table& table_;
  const Table& validation_table_;
  Rows rows_, validation_;
  BoostingPlan plan_;
  double ridge_;
  base::Team& team_;
  TreeGrower<Row, Table> grower_;
  PageVector<Row> gradient_;
  PageVector<std::uint32_t> drawn_, undrawn_;
  std::vector<std::int32_t> value_;
  std::vector<std::int64_t> wanted_;  // nodes whose values are computed
  std::vector<Piece> piece_;
};

}  // namespace lhtree::grow
