// Growing all trees of a forest in one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "dense_splitter.hpp"
#include "grow.hpp"
#include "parallel.hpp"
#include "random.hpp"
#include "sampled_splitter.hpp"
#include "sparse_splitter.hpp"
#include "tree.hpp"

namespace lhtree {

/// Which trees to grow: members first_member, first_member + 1, ..., one per
/// entry of `beta`, each with one tree per entry of `target`.
struct Plan {
  std::uint64_t seed = 0;
  std::int64_t first_member = 0;
  std::vector<double> beta;
  std::vector<std::int32_t> target;
  std::uint32_t n_draws = 0;
  bool bootstrap = false;
  bool balance = false;  // weigh the classes of each member's rows alike
  std::int64_t n_classes = 0;
  Rules rules;

  std::int64_t n_trees() const { return static_cast<std::int64_t>(beta.size() * target.size()); }
};

/// The labels and weights of the table's rows.
struct Labels {
  const std::int32_t* code;  // [n_rows] class of each row
  const double* weight;      // [n_rows] or null: every row counts once
};

/// The arrays of a finished forest; see ForestView for their meaning.
struct Forest {
  std::vector<std::int64_t> tree_start, start, feature_start, n_samples;
  std::vector<std::int32_t> target, left, feature;
  std::vector<double> weight, center, deviation, threshold, norm, share, weight_sum, extremes;
  std::vector<std::int8_t> rule;
};

/// Weight of each drawn row: its own, times how often it was drawn, times the
/// weight of its class. None where every row counts once.
inline std::vector<double> weigh_rows(const Labels& labels, const Draw& draw, const Plan& plan,
                                      std::int64_t n_rows) {
  std::vector<double> weight;
  if (!labels.weight && draw.multiplicity.empty() && !plan.balance) return weight;
  weight.resize(n_rows);
  std::vector<double> class_sum(plan.n_classes, 0.0);
  for (std::size_t k = 0; k < draw.row.size(); ++k) {
    const std::uint32_t i = draw.row[k];
    weight[i] = labels.weight ? labels.weight[i] : 1.0;
    if (!draw.multiplicity.empty()) weight[i] *= draw.multiplicity[k];
    class_sum[labels.code[i]] += weight[i];
  }
  if (!plan.balance) return weight;
  const double total = std::accumulate(class_sum.begin(), class_sum.end(), 0.0);
  const auto n_present = static_cast<double>(
      std::count_if(class_sum.begin(), class_sum.end(), [](double sum) { return sum > 0.0; }));
  for (const std::uint32_t i : draw.row)
    weight[i] *= total / (n_present * class_sum[labels.code[i]]);
  return weight;
}

template <class T>
DenseSplitter<T> make_splitter(const Table<T>& table, const double* weight, const Rules& rules,
                               const StopFlag& stop) {
  return {table, weight, rules, stop};
}

template <class T>
SampledSplitter<ColumnReader<T>> make_splitter(const ColumnTable<T>& table, const double* weight,
                                               const Rules& rules, const StopFlag& stop) {
  return {ColumnReader<T>(table), weight, rules, stop};
}

/// Call grow(splitter) with what splits nodes of such a table: one by rows grows from all
/// columns, one by columns from few.
template <class AnyTable, class Grow>
GrownTree with_splitter(const AnyTable& table, const double* weight, const Rules& rules,
                        const StopFlag& stop, const Grow& grow) {
  auto splitter = make_splitter(table, weight, rules, stop);
  return grow(splitter);
}

template <class Grow>
GrownTree with_splitter(const SparseTable& table, const double* weight, const Rules& rules,
                        const StopFlag& stop, const Grow& grow) {
  if (table.by_columns) {
    SampledSplitter<SparseReader> splitter(SparseReader(table), weight, rules, stop);
    return grow(splitter);
  }
  SparseSplitter splitter(table, weight, rules, stop);
  return grow(splitter);
}

template <class AnyTable>
GrownTree grow_tree(const AnyTable& table, const Labels& labels, const Plan& plan,
                    std::int64_t number, const StopFlag& stop) {
  const auto n_targets = static_cast<std::int64_t>(plan.target.size());
  const std::int64_t step = number / n_targets, member = plan.first_member + step;
  const std::int32_t target = plan.target[number % n_targets];
  Draw draw = draw_rows(plan.seed, member, static_cast<std::uint32_t>(table.n_rows), plan.n_draws,
                        plan.bootstrap, stop);
  const std::vector<double> weight = weigh_rows(labels, draw, plan, table.n_rows);
  std::vector<std::uint32_t>& row = draw.row;
  const auto middle = std::stable_partition(
      row.begin(), row.end(), [&](std::uint32_t i) { return labels.code[i] == target; });
  Rules rules = plan.rules;
  rules.beta = plan.beta[step];
  const std::uint64_t key =
      tree_key(member_key(plan.seed, member), static_cast<std::uint64_t>(target));
  return with_splitter(table, weight.empty() ? nullptr : weight.data(), rules, stop,
                       [&](auto& splitter) {
                         Grower grower(splitter, rules, stop);
                         return grower.grow(row, middle - row.begin(), Start{key, key});
                       });
}

/// A node whose subtree is grown apart from the rest of its tree.
struct Branch {
  Start start;
  double beta;
  std::int64_t begin, middle, end;  // its part of the row array: targets, then the rest
};

/// Grow the subtree of a branch. `weight` has an entry for each entry of `row`, or is null.
template <class AnyTable>
GrownTree grow_branch(const AnyTable& table, const std::uint32_t* row, const double* weight,
                      const Branch& branch, Rules rules, const StopFlag& stop) {
  std::vector<std::uint32_t> rows(row + branch.begin, row + branch.end);
  std::vector<double> table_weight(weight ? table.n_rows : 0);
  for (std::int64_t i = branch.begin; weight && i < branch.end; ++i)
    table_weight[row[i]] = weight[i];
  rules.beta = branch.beta;
  auto splitter = make_splitter(table, weight ? table_weight.data() : nullptr, rules, stop);
  Grower grower(splitter, rules, stop);
  return grower.grow(rows, branch.middle - branch.begin, branch.start);
}

inline void append_terms(Forest& forest, const GrownTree& tree, const Node& node,
                         std::int64_t n_features) {
  const auto copy = [&](const auto& from, auto& to) {
    const auto first = from.begin() + node.first_term;
    to.insert(to.end(), first, first + node.n_terms);
  };
  copy(tree.weight, forest.weight);
  copy(tree.center, forest.center);
  copy(tree.deviation, forest.deviation);
  if (node.n_terms < n_features) copy(tree.feature, forest.feature);
  forest.start.push_back(static_cast<std::int64_t>(forest.weight.size()));
  forest.feature_start.push_back(static_cast<std::int64_t>(forest.feature.size()));
}

inline void append_tree(Forest& forest, const GrownTree& tree, std::int32_t target,
                        std::int64_t n_features) {
  std::int32_t next_child =
      1;  // breadth-first, children are numbered in the order of their parents
  for (const std::int32_t id : breadth_first(tree.node)) {
    const Node& node = tree.node[id];
    forest.left.push_back(node.left < 0 ? -1 : next_child);
    next_child += node.left < 0 ? 0 : 2;
    forest.threshold.push_back(node.threshold);
    forest.norm.push_back(node.norm);
    forest.share.push_back(node.share);
    forest.n_samples.push_back(node.n_samples);
    forest.weight_sum.push_back(node.weight_sum);
    forest.rule.push_back(static_cast<std::int8_t>(node.rule));
    forest.extremes.insert(forest.extremes.end(), node.extremes.begin(), node.extremes.end());
    append_terms(forest, tree, node, n_features);
  }
  forest.target.push_back(target);
  forest.tree_start.push_back(static_cast<std::int64_t>(forest.left.size()));
}

/// Room for all trees at once: growing vectors would hold the model twice.
inline void reserve(Forest& forest, const std::vector<GrownTree>& trees, std::int64_t n_features) {
  std::size_t n_nodes = 0, n_terms = 0, n_columns = 0;
  for (const GrownTree& tree : trees) {
    n_nodes += tree.node.size();
    n_terms += tree.weight.size();
    for (const Node& node : tree.node) n_columns += node.n_terms < n_features ? node.n_terms : 0;
  }
  for (auto* array : {&forest.start, &forest.feature_start}) array->reserve(n_nodes + 1);
  for (auto* array : {&forest.threshold, &forest.norm, &forest.share, &forest.weight_sum})
    array->reserve(n_nodes);
  for (auto* array : {&forest.weight, &forest.center, &forest.deviation}) array->reserve(n_terms);
  forest.left.reserve(n_nodes);
  forest.n_samples.reserve(n_nodes);
  forest.rule.reserve(n_nodes);
  forest.extremes.reserve(4 * n_nodes);
  forest.feature.reserve(n_columns);
}

/// The arrays of trees, which are used up; tree number i has target[i mod size].
inline Forest join_trees(std::vector<GrownTree>& trees, const std::vector<std::int32_t>& target,
                         std::int64_t n_features) {
  Forest forest;
  forest.tree_start.push_back(0);
  forest.start.push_back(0);
  forest.feature_start.push_back(0);
  reserve(forest, trees, n_features);
  for (std::size_t number = 0; number < trees.size(); ++number) {
    append_tree(forest, trees[number], target[number % target.size()], n_features);
    trees[number] = GrownTree{};  // its memory goes back before the next copy
  }
  return forest;
}

template <class AnyTable>
Forest grow_forest(const AnyTable& table, const Labels& labels, const Plan& plan,
                   std::int64_t n_threads, const Poll& poll) {
  std::vector<GrownTree> trees(plan.n_trees());
  run_tasks(
      plan.n_trees(), n_threads,
      [&](std::int64_t number, const StopFlag& stop) {
        trees[number] = grow_tree(table, labels, plan, number, stop);
      },
      poll);
  return join_trees(trees, plan.target, table.n_columns);
}

/// Grow the subtrees of branches over the same table, one tree each.
template <class AnyTable>
Forest grow_branches(const AnyTable& table, const std::uint32_t* row, const double* weight,
                     const std::vector<Branch>& branches, const Rules& rules,
                     std::int64_t n_threads, const Poll& poll) {
  std::vector<GrownTree> trees(branches.size());
  run_tasks(
      static_cast<std::int64_t>(branches.size()), n_threads,
      [&](std::int64_t number, const StopFlag& stop) {
        trees[number] = grow_branch(table, row, weight, branches[number], rules, stop);
      },
      poll);
  return join_trees(trees, {0}, table.n_columns);
}

}  // namespace lhtree
