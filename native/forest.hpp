// Growing all trees of a forest in one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "class_sums.hpp"
#include "dense_splitter.hpp"
#include "forest_writer.hpp"
#include "grow.hpp"
#include "pages.hpp"
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
inline PageVector<double> weigh_rows(const Labels& labels, const Draw& draw, const Plan& plan,
                                     std::int64_t n_rows) {
  PageVector<double> weight;
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

/// Move the rows of the target class to the front, each side in its order; returns how many they
/// are.
inline std::int64_t put_targets_first(const Labels& labels, std::int32_t target,
                                      PageVector<std::uint32_t>& row) {
  const auto is_target = [&](std::uint32_t i) { return labels.code[i] == target; };
  PageVector<std::uint32_t> ordered(row.size());  // a stable partition's would stay in the heap
  const auto middle = std::copy_if(row.begin(), row.end(), ordered.begin(), is_target);
  std::remove_copy_if(row.begin(), row.end(), middle, is_target);
  row.swap(ordered);
  return middle - row.begin();
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

/// Have a splitter that sums all columns start from sums by class, where other trees of the
/// member do, too, and where these take little memory.
template <class Splitter, class AnyTable>
void share_sums(Splitter& splitter, const AnyTable& table, const Labels& labels, const Plan& plan,
                const PageVector<std::uint32_t>& row, std::int64_t step, std::int32_t target,
                MemberSums& sums, const StopFlag& stop) {
  if constexpr (requires { splitter.start_from(nullptr, target); }) {
    constexpr std::size_t least_rows = 16;  // of a class
    const bool is_small = row.size() / least_rows < static_cast<std::size_t>(plan.n_classes);
    if (splitter.weight() || table.has_missing || plan.target.size() < 2 || is_small) return;
    splitter.start_from(
        sums.find(step, [&] { return ClassSums(table, row, labels.code, plan.n_classes, stop); }),
        target);
  }
}

template <class AnyTable>
GrownTree grow_tree(const AnyTable& table, const Labels& labels, const Plan& plan,
                    std::int64_t number, MemberSums& sums, GrownTree room, const StopFlag& stop) {
  const auto n_trees = static_cast<std::int64_t>(plan.target.size());  // of a member
  const std::int64_t step = number / n_trees, member = plan.first_member + step;
  const std::int32_t target = plan.target[number % n_trees];
  Draw draw = draw_rows(plan.seed, member, static_cast<std::uint32_t>(table.n_rows), plan.n_draws,
                        plan.bootstrap, stop);
  const PageVector<double> weight = weigh_rows(labels, draw, plan, table.n_rows);
  const std::int64_t n_targets = put_targets_first(labels, target, draw.row);
  Rules rules = plan.rules;
  rules.beta = plan.beta[step];
  const std::uint64_t key =
      tree_key(member_key(plan.seed, member), static_cast<std::uint64_t>(target));
  return with_splitter(
      table, weight.empty() ? nullptr : weight.data(), rules, stop, [&](auto& splitter) {
        share_sums(splitter, table, labels, plan, draw.row, step, target, sums, stop);
        Grower grower(splitter, rules, stop, std::move(room));
        return grower.grow(draw.row, n_targets, Start{key, key});
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
  PageVector<std::uint32_t> rows(row + branch.begin, row + branch.end);
  PageVector<double> table_weight(weight ? table.n_rows : 0);
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
  MemberSums sums(plan.beta.size(), plan.target.size());
  run_tasks(
      plan.n_trees(), n_threads,
      [&](std::int64_t number, const StopFlag& stop) {
        writer.add(number, grow_tree(table, labels, plan, number, sums, writer.take_room(), stop));
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
