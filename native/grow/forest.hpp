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

/// What a thread grows trees with. Rows that are drawn several times have a gradient of the tree.
template <class Row, base::EncodedTable Table>
class EstimatorGrower {
 public:
  EstimatorGrower(const std::vector<base::Column>& columns, const Table& table, const Rows& rows,
                  const PageVector<std::int32_t>& gradient, const AveragedPlan& plan,
                  const StopFlag& stop)
      : columns_(columns),
        table_(table),
        rows_(rows),
        plan_(plan),
        stop_(stop),
        grower_(table, plan, stop) {
    gradient_.resize(rows.n);
    for (std::int64_t i = 0; i < rows.n; ++i)
      gradient_[i] = Row::make(gradient[i], 1, rows.weight_of(i));
    if (plan.bootstrap) once_ = gradient_;
  }

  /// Grow the tree of an estimator.
  model::Ensemble grow(std::int64_t number) {
    const auto seed = static_cast<std::uint64_t>(number);
    Draw draw = draw_rows(plan_.seed, seed, static_cast<std::uint32_t>(rows_.n), plan_.n_draws,
                          plan_.bootstrap, std::move(room_), stop_);
    for (std::size_t k = 0; k < draw.multiplicity.size(); ++k)
      gradient_[draw.row[k]] = multiply(once_[draw.row[k]], draw.multiplicity[k]);
    const std::uint64_t key = tree_key(member_key(plan_.seed, seed), 0);
    const bool has_hyperplanes = number % plan_.hyperplane_interval == 0;
    const auto& nodes = grower_.grow(draw.row, gradient_.data(), key, has_hyperplanes);
    room_ = std::move(draw.row);
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
  static Row multiply(const Row& row, std::int64_t n) {
    if constexpr (Row::has_weight) return {row.g * n, row.h * n, row.w * n};
    return row;  // such rows are drawn once
  }

  void compute_values(const std::vector<Node<typename Row::Sums>>& nodes) {
    const bool is_monotone = plan_.constraints.is_monotone();
    value_.assign(nodes.size(), 0);
    for (std::size_t k = 0; k < nodes.size(); ++k)
      if (nodes[k].left < 0 || is_monotone) value_[k] = average(nodes[k]);
    if (is_monotone) clip_values(nodes, plan_.constraints, table_.layout, value_);
  }

  /// The mean of what the rows of a node are above the start, rounded.
  std::int32_t average(const Node<typename Row::Sums>& node) const {
    constexpr std::int64_t offset = std::int64_t{1} << 33;  // above all residuals
    base::Wide sum;
    std::uint64_t weight = 0;
    for (std::int64_t i = node.begin; i < node.end; ++i) {
      const std::uint32_t row = grower_.rows()[i];
      const auto w = static_cast<std::uint64_t>(gradient_[row].weight());
      sum += base::multiply(static_cast<std::uint64_t>(offset - residual_of(rows_, row)), w);
      weight += w;
    }
    const auto mean = base::divide(sum + sum + base::Wide{weight, 0}, 2 * weight);
    return round_value(static_cast<double>(static_cast<std::int64_t>(mean) - offset));
  }

  const std::vector<base::Column>& columns_;
  const Table& table_;
  Rows rows_;
  const AveragedPlan& plan_;
  const StopFlag& stop_;
  AveragedTreeGrower<Row, Table> grower_;
  PageVector<Row> gradient_, once_;
  PageVector<std::uint32_t> room_;
  std::vector<std::int32_t> value_;
};

/// How far the start is above the targets, in the bits of a gradient.
inline PageVector<std::int32_t> make_gradients(const Rows& rows) {
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < rows.n; ++i)
    largest = std::max(largest, std::abs(residual_of(rows, i)));
  int shift = 0;
  while (largest >> shift > most_gradient) ++shift;
  const std::int64_t half = (std::int64_t{1} << shift) >> 1;
  PageVector<std::int32_t> gradient(rows.n);
  for (std::int64_t i = 0; i < rows.n; ++i)
    gradient[i] = static_cast<std::int32_t>(
        std::clamp((residual_of(rows, i) + half) >> shift, -most_gradient, most_gradient));
  return gradient;
}

/// Grow all trees of a plan.
template <class Row, base::EncodedTable Table>
model::Ensemble grow_forest(const std::vector<base::Column>& columns, const Table& table,
                            const Rows& rows, const AveragedPlan& plan, std::int64_t n_threads,
                            const Poll& poll) {
  using Grower = EstimatorGrower<Row, Table>;
  const PageVector<std::int32_t> gradient = make_gradients(rows);
  std::vector<model::Ensemble> trees(plan.n_estimators);
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
    return std::make_unique<Grower>(columns, table, rows, gradient, plan, stop);
  };
  run_tasks(
      plan.n_estimators, n_threads,
      [&](std::int64_t k, const StopFlag& stop) {
        std::unique_ptr<Grower> grower = take(stop);
        trees[k] = grower->grow(plan.first_estimator + k);
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
