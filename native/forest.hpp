// Growing all trees of a forest in one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "dense_splitter.hpp"
#include "forest_writer.hpp"
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
  bool by_columns = false;  // whether the table is transposed: splits over few columns want it
  Rules rules;

  std::int64_t n_trees() const { return static_cast<std::int64_t>(beta.size() * target.size()); }
};

/// The labels and weights of the table's rows.
struct Labels {
  const std::int32_t* code;  // [n_rows] class of each row
  const double* weight;      // [n_rows] or null: every row counts once
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
                    std::int64_t number, GrownTree room, const StopFlag& stop) {
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
                         Grower grower(splitter, rules, stop, std::move(room));
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
                      const Branch& branch, Rules rules, GrownTree room, const StopFlag& stop) {
  std::vector<std::uint32_t> rows(row + branch.begin, row + branch.end);
  std::vector<double> table_weight(weight ? table.n_rows : 0);
  for (std::int64_t i = branch.begin; weight && i < branch.end; ++i)
    table_weight[row[i]] = weight[i];
  rules.beta = branch.beta;
  auto splitter = make_splitter(table, weight ? table_weight.data() : nullptr, rules, stop);
  Grower grower(splitter, rules, stop, std::move(room));
  return grower.grow(rows, branch.middle - branch.begin, branch.start);
}

template <class AnyTable>
Forest grow_forest(const AnyTable& table, const Labels& labels, const Plan& plan,
                   std::int64_t n_threads, const Poll& poll) {
  ForestWriter writer(plan.n_trees(), plan.target, table.n_columns);
  run_tasks(
      plan.n_trees(), n_threads,
      [&](std::int64_t number, const StopFlag& stop) {
        writer.add(number, grow_tree(table, labels, plan, number, writer.take_room(), stop));
      },
      poll);
  return writer.finish();
}

/// Grow the subtrees of branches over the same table, one tree each.
template <class AnyTable>
Forest grow_branches(const AnyTable& table, const std::uint32_t* row, const double* weight,
                     const std::vector<Branch>& branches, const Rules& rules,
                     std::int64_t n_threads, const Poll& poll) {
  const auto n_trees = static_cast<std::int64_t>(branches.size());
  ForestWriter writer(n_trees, {0}, table.n_columns);
  run_tasks(
      n_trees, n_threads,
      [&](std::int64_t number, const StopFlag& stop) {
        writer.add(number, grow_branch(table, row, weight, branches[number], rules,
                                       writer.take_room(), stop));
      },
      poll);
  return writer.finish();
}

}  // namespace lhtree
