// All trees of a forest, on threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/columns.hpp"
#include "grow/averaged.hpp"
#include "model/ensemble.hpp"
#include "old/parallel.hpp"

namespace lhtree::grow {

/// What the trees of a forest are grown by, in the bits of a gradient, and what leaves answer.
class Targets {
 public:
  static constexpr int share_bits = 16;     // after the point, of the share of a class
  static constexpr int positive_bits = 21;  // of the gradient of a row of the class: 2**21
  static_assert(positive_bits < stats::gradient_bits);

  Targets(const Rows& rows, std::int64_t n_classes) : rows_(rows), n_classes_(n_classes) {
    if (n_classes > 0) return;
    std::int64_t largest = 0;
    for (std::int64_t i = 0; i < rows.n; ++i)
      largest = std::max(largest, std::abs(residual_of(rows, i)));
    while (largest >> shift_ > most_gradient) ++shift_;
  }

  /// How far the start is above the target of a row: minus 2**21 for a row of the class.
  std::int64_t gradient_of(std::int64_t row, std::int64_t positive) const {
    if (n_classes_ > 0) return -(std::int64_t{rows_.y[row] == positive} << positive_bits);
    const std::int64_t half = (std::int64_t{1} << shift_) >> 1;
    return std::clamp((residual_of(rows_, row) + half) >> shift_, -most_gradient, most_gradient);
  }

  /// What a unit of gradients is, squared.
  double square_unit() const {
    return std::ldexp(1.0, 2 * (n_classes_ > 0 ? -positive_bits : shift_));
  }

  /// The share of the class in a node, or the mean of what its targets are above the start, rounded.
  template <class Row>
  std::int32_t average(const Node<typename Row::Sums>& node, const std::uint32_t* row,
                       const Row* gradient) const {
    if (n_classes_ > 0) {
      const auto weight = static_cast<std::uint64_t>(node.sums.h);
      const base::Wide twice = base::multiply(
          static_cast<std::uint64_t>(-node.sums.g >> positive_bits), std::uint64_t{2} << share_bits);
      return static_cast<std::int32_t>(base::divide(twice + base::Wide{weight, 0}, 2 * weight));
    }
    constexpr std::int64_t offset = std::int64_t{1} << 33;  // above all residuals
    base::Wide sum;
    std::uint64_t weight = 0;
    for (std::int64_t i = node.begin; i < node.end; ++i) {
      const auto w = static_cast<std::uint64_t>(gradient[row[i]].weight());
      sum += base::multiply(static_cast<std::uint64_t>(offset - residual_of(rows_, row[i])), w);
      weight += w;
    }
    const auto mean = base::divide(sum + sum + base::Wide{weight, 0}, 2 * weight);
    return round_value(static_cast<double>(static_cast<std::int64_t>(mean) - offset));
  }

 private:
  const Rows& rows_;
  std::int64_t n_classes_;
  int shift_ = 0;
};

/// Cut subtrees whose splits gain no more than `price` for each leaf but one.
template <class Sums>
void prune(std::vector<Node<Sums>>& nodes, double price) {
  const split::Limits none;
  std::vector<double> gain(nodes.size(), 0.0);
  std::vector<std::int64_t> n_leaves(nodes.size(), 1);
  for (std::size_t k = nodes.size(); k-- > 0;) {  // children come after their parents
    Node<Sums>& node = nodes[k];
    if (node.left < 0) continue;
    const auto left = static_cast<std::size_t>(node.left), right = left + 1;
    const double own = split::compute_score(nodes[left].sums, none) +
                       split::compute_score(nodes[right].sums, none) -
                       split::compute_score(node.sums, none);
    gain[k] = own + (gain[left] + gain[right]);
    n_leaves[k] = n_leaves[left] + n_leaves[right];
    if (gain[k] > price * static_cast<double>(n_leaves[k] - 1)) continue;
    node.left = -1;
    gain[k] = 0.0;
    n_leaves[k] = 1;
  }
}

/// What a thread grows trees with.
template <class Row, base::EncodedTable Table>
class EstimatorGrower {
 public:
  EstimatorGrower(const std::vector<base::Column>& columns, const Table& table, const Rows& rows,
                  const Targets& targets, const AveragedPlan& plan, const StopFlag& stop)
      : columns_(columns),
        table_(table),
        rows_(rows),
        targets_(targets),
        plan_(plan),
        stop_(stop),
        grower_(table, plan, stop) {
    gradient_.resize(rows.n);
  }

  /// Grow a tree; those of an estimator follow each other.
  model::Ensemble grow(std::int64_t number) {
    const std::int64_t estimator = number / plan_.n_trees();
    const std::int64_t positive = plan_.positive_class(number % plan_.n_trees());
    draw(estimator);
    for (std::size_t k = 0; k < draw_.row.size(); ++k)
      gradient_[draw_.row[k]] =
          Row::make(targets_.gradient_of(draw_.row[k], positive), 1, weight_of(k));
    const std::uint64_t key = tree_key(member_key(plan_.seed, static_cast<std::uint64_t>(estimator)),
                                       static_cast<std::uint64_t>(positive));
    const bool has_hyperplanes = estimator % plan_.hyperplane_interval == 0;
    auto& nodes = grower_.grow(draw_.row, gradient_.data(), key, has_hyperplanes);
    if (plan_.ccp_alpha > 0.0)
      prune(nodes, plan_.ccp_alpha * static_cast<double>(nodes[0].sums.h) / targets_.square_unit());
    compute_values(nodes);
    model::Ensemble tree;
    const split::Limits none;
    tree.append(
        nodes, columns_, value_.data(), 1, [](const auto& node) { return node.sums.h; },
        [&](const auto& node) {
          return plan_.constraints.is_monotone()
                     ? node.split.score
                     : node.split.score - split::compute_score(node.sums, none);
        });
    return tree;
  }

 private:
  void draw(std::int64_t estimator) {
    if (estimator == drawn_) return;
    draw_ = draw_rows(plan_.seed, static_cast<std::uint64_t>(estimator),
                      static_cast<std::uint32_t>(rows_.n), plan_.n_draws, plan_.bootstrap,
                      std::move(draw_.row), stop_);
    drawn_ = estimator;
    if (!plan_.balance) return;
    factor_.assign(plan_.n_classes, 0.0);
    std::vector<std::int64_t> sum(plan_.n_classes, 0);
    std::int64_t total = 0, n_present = 0;
    for (std::size_t k = 0; k < draw_.row.size(); ++k) sum[rows_.y[draw_.row[k]]] += copies_of(k);
    for (const std::int64_t each : sum) total += each, n_present += each > 0;
    for (std::size_t c = 0; c < sum.size(); ++c)
      if (sum[c] > 0)
        factor_[c] = static_cast<double>(total) /
                     (static_cast<double>(n_present) * static_cast<double>(sum[c]));
  }

  /// What the copies of the k-th row drawn weigh.
  std::int64_t copies_of(std::size_t k) const {
    const std::int64_t n = draw_.multiplicity.empty() ? 1 : draw_.multiplicity[k];
    return n * rows_.weight_of(draw_.row[k]);
  }
  std::int64_t weight_of(std::size_t k) const {
    const std::int64_t own = copies_of(k);
    if (!plan_.balance) return own;
    const double balanced = static_cast<double>(own) * factor_[rows_.y[draw_.row[k]]];
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(base::round_half_up(balanced)));
  }

  void compute_values(const std::vector<Node<typename Row::Sums>>& nodes) {
    const bool is_monotone = plan_.constraints.is_monotone();
    value_.assign(nodes.size(), 0);
    for (std::size_t k = 0; k < nodes.size(); ++k)
      if (nodes[k].left < 0 || is_monotone)
        value_[k] = targets_.average(nodes[k], grower_.rows().data(), gradient_.data());
    if (is_monotone) clip_values(nodes, plan_.constraints, table_.layout, value_);
  }

  const std::vector<base::Column>& columns_;
  const Table& table_;
  Rows rows_;
  const Targets& targets_;
  const AveragedPlan& plan_;
  const StopFlag& stop_;
  AveragedTreeGrower<Row, Table> grower_;
  std::int64_t drawn_ = -1;  // the estimator whose rows were drawn
  Draw draw_;
  std::vector<double> factor_;  // of the weights of classes
  PageVector<Row> gradient_;
  std::vector<std::int32_t> value_;
};

/// Grow all trees of a plan.
template <class Row, base::EncodedTable Table>
model::Ensemble grow_forest(const std::vector<base::Column>& columns, const Table& table,
                            const Rows& rows, const AveragedPlan& plan, std::int64_t n_threads,
                            const Poll& poll) {
  using Grower = EstimatorGrower<Row, Table>;
  const Targets targets(rows, plan.n_classes);
  std::vector<model::Ensemble> trees(plan.n_estimators * plan.n_trees());
  std::vector<std::unique_ptr<Grower>> idle;
  std::mutex mutex;
  const auto take = [&](const StopFlag& stop) {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        std::unique_ptr<Grower> grower = std::move(idle.back());
        idle.pop_back();
        return grower;
      }
    }
    return std::make_unique<Grower>(columns, table, rows, targets, plan, stop);
  };
  run_tasks(
      plan.n_estimators * plan.n_trees(), n_threads,
      [&](std::int64_t k, const StopFlag& stop) {
        std::unique_ptr<Grower> grower = take(stop);
        trees[k] = grower->grow(plan.first_estimator * plan.n_trees() + k);
        const std::lock_guard lock(mutex);
        idle.push_back(std::move(grower));
      },
      poll);
  idle.clear();
  model::Ensemble all;
  for (model::Ensemble& each : trees) {
    all.append(each);
    each = {};
  }
  return all;
}

}  // namespace lhtree::grow
