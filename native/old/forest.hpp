// Growing all trees of a forest in one call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "class_sums.hpp"
#include "dense_splitter.hpp"
#include "forest_writer.hpp"
#include "grow.hpp"
#include "pages.hpp"
#include "parallel.hpp"
#include "random.hpp"
#include "sampled_splitter.hpp"
#include "spares.hpp"
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

/// Have the rows of a member as those of a tree: its class first, each side in its order.
inline void sort_rows(const Labels& labels, std::int32_t target,
                      const PageVector<std::uint32_t>& member, TreeRows& tree) {
  remake(tree.row, member.size());
  const auto is_target = [&](std::uint32_t i) { return labels.code[i] == target; };
  const auto middle = std::copy_if(member.begin(), member.end(), tree.row.begin(), is_target);
  std::remove_copy_if(member.begin(), member.end(), middle, is_target);
  tree.n_targets = middle - tree.row.begin();
}

/// Call use(make) with a function that makes what splits nodes of such a table: one by rows grows
/// from all columns, one by columns from few.
template <class T, class Use>
void with_maker(const Table<T>& table, const Use& use) {
  use([&](const double* weight, const Rules& rules, Bench&, const StopFlag& stop) {
    return DenseSplitter<T>(table, weight, rules, stop);
  });
}

template <class T, class Use>
void with_maker(const ColumnTable<T>& table, const Use& use) {
  use([&](const double* weight, const Rules& rules, Bench& bench, const StopFlag& stop) {
    return SampledSplitter(ColumnReader<T>(table), weight, rules, bench.columns, stop);
  });
}

template <class Use>
void with_maker(const SparseTable& table, const Use& use) {
  if (table.by_columns)
    use([&](const double* weight, const Rules& rules, Bench& bench, const StopFlag& stop) {
      return SampledSplitter(SparseReader(table), weight, rules, bench.columns, stop);
    });
  else
    use([&](const double* weight, const Rules& rules, Bench&, const StopFlag& stop) {
      return SparseSplitter(table, weight, rules, stop);
    });
}

/// A tree on its way. It stays where it is: its parts refer to each other.
template <class Splitter>
struct Growth {
  Rules rules;
  TreeRows rows;
  Splitter splitter;
  Grower<Splitter> grower;

  template <class Make>
  Growth(const Rules& its_rules, TreeRows its_rows, const double* weight, const Make& make,
         Bench& bench, const StopFlag& stop)
      : rules(its_rules),
        rows(std::move(its_rows)),
        splitter(make(weight, rules, bench, stop)),
        grower(splitter, rules, stop, bench) {}
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

  void begin(const Start& start) { grower.begin(rows, start); }
};

/// Split the large nodes of trees that grow side by side, if their splitters know such.
template <class AnyTable, class Splitter>
void split_large(const AnyTable& table, std::deque<Growth<Splitter>>& growths,
                 const StopFlag& stop) {
  if constexpr (requires { typename Splitter::Sweep; }) {
    for (;;) {
      typename Splitter::Sweep sweep;
      for (auto& growth : growths) growth.grower.split_large(sweep);
      if (sweep.is_empty()) return;
      sweep.run(table, stop);
    }
  }
}

template <class AnyTable>
class ForestGrower {
 public:
  ForestGrower(const AnyTable& table, const Labels& labels, const Plan& plan)
      : table_(table),
        labels_(labels),
        plan_(plan),
        n_member_trees_(static_cast<std::int64_t>(plan.target.size())),
        sums_(plan.beta.size(), plan.target.size()),
        writer_(plan.n_trees(), plan.target, table.n_columns) {}

  Forest grow(std::int64_t n_threads, const Poll& poll) {
    const std::vector<Group> groups = group_trees(n_threads);
    n_waiting_ = static_cast<std::int64_t>(groups.size());
    std::atomic<std::int64_t> n_grown{0};
    run_tasks(
        static_cast<std::int64_t>(groups.size()), n_threads,
        [&](std::int64_t number, const StopFlag& stop) {
          grow_group(groups[number], stop);
          n_grown += groups[number].end - groups[number].begin;
        },
        [&](std::int64_t) { poll(n_grown); });
    return writer_.finish();
  }

 private:
  /// Trees of one member that grow side by side, by number.
  struct Group {
    std::int64_t begin, end;
  };

  /// How many trees read a large table together. That takes less time, but each more needs the
  /// number of every row and what is known of it: all of these may take a 25th of the table. And
  /// every thread must find several groups, or some wait for the last one.
  std::int64_t find_group_size(std::int64_t n_threads) const {
    if constexpr (requires { is_large(table_, plan_.n_draws); }) {
      constexpr std::int64_t most = 4;  // what more save is little
      constexpr std::int64_t bytes_of_tree = sizeof(std::uint32_t) + sizeof(float), table_part = 25;
      constexpr std::int64_t least_groups = 4;  // of a thread
      const bool is_weighted = labels_.weight || plan_.bootstrap || plan_.balance;
      if (is_weighted || !is_large(table_, plan_.n_draws)) return 1;
      const auto bytes_of_value = static_cast<std::int64_t>(sizeof(*table_.values));
      const std::int64_t n_for_memory =
          1 + table_.n_columns * bytes_of_value / table_part / bytes_of_tree;
      const std::int64_t n_for_threads =
          n_threads > 1 ? plan_.n_trees() / (least_groups * n_threads) : most;
      return std::clamp<std::int64_t>(std::min(n_for_memory, n_for_threads), 1, most);
    }
    return 1;
  }

  std::vector<Group> group_trees(std::int64_t n_threads) const {
    const std::int64_t size = find_group_size(n_threads);
    std::vector<Group> groups;
    for (std::int64_t first = 0; first < plan_.n_trees(); first += n_member_trees_)
      for (std::int64_t k = 0; k < n_member_trees_; k += size)
        groups.push_back({first + k, first + std::min(k + size, n_member_trees_)});
    return groups;
  }

  void grow_group(Group group, const StopFlag& stop) {
    --n_waiting_;
    const std::int64_t step = group.begin / n_member_trees_, member = plan_.first_member + step;
    Bench bench = benches_.take();
    Draw draw = draw_rows(plan_.seed, member, static_cast<std::uint32_t>(table_.n_rows),
                          plan_.n_draws, plan_.bootstrap, std::move(bench.number), stop);
    const PageVector<double> weight = weigh_rows(labels_, draw, plan_, table_.n_rows);
    Rules rules = plan_.rules;
    rules.beta = plan_.beta[step];
    with_maker(table_, [&](const auto& make) {
      std::deque<Growth<decltype(make(weight.data(), rules, bench, stop))>> growths;
      for (std::int64_t number = group.begin; number < group.end; ++number) {
        const std::int32_t target = plan_.target[number % n_member_trees_];
        TreeRows rows = rows_.take();
        sort_rows(labels_, target, draw.row, rows);
        auto& growth = growths.emplace_back(
            rules, std::move(rows), weight.empty() ? nullptr : weight.data(), make, bench, stop);
        share_sums(growth.splitter, step, target, draw.row, stop);
        const std::uint64_t key =
            tree_key(member_key(plan_.seed, member), static_cast<std::uint64_t>(target));
        growth.begin(Start{key, key});
      }
      bench.number = std::move(draw.row);  // its memory may be used
      draw = {};
      split_large(table_, growths, stop);
      for (std::int64_t number = group.begin; number < group.end; ++number) {
        GrownTree tree = growths.front().grower.finish(writer_.take_room());
        put_away(std::move(growths.front().rows), rows_);
        growths.pop_front();
        if (growths.empty()) put_away(std::move(bench), benches_);
        writer_.add(number, std::move(tree));
      }
    });
  }

  /// The forest is largest when the last tree is written: once all are on their way, nothing is
  /// kept for others.
  template <class Thing>
  void put_away(Thing thing, Spares<Thing>& spares) {
    if (n_waiting_ > 0)
      spares.give(std::move(thing));
    else
      spares.clear();
  }

  /// Have a splitter that sums all columns start from sums by class, where other trees of the
  /// member do, too, and where these take little memory.
  template <class Splitter>
  void share_sums(Splitter& splitter, std::int64_t step, std::int32_t target,
                  const PageVector<std::uint32_t>& row, const StopFlag& stop) {
    if constexpr (requires { splitter.start_from(nullptr, target); }) {
      constexpr std::size_t least_rows = 16;  // of a class
      const bool is_small = row.size() / least_rows < static_cast<std::size_t>(plan_.n_classes);
      if (splitter.weight() || table_.has_missing || n_member_trees_ < 2 || is_small) return;
      const auto add_up = [&] {
        return ClassSums(table_, row, labels_.code, plan_.n_classes, stop);
      };
      splitter.start_from(sums_.find(step, add_up), target);
    }
  }

  const AnyTable& table_;
  const Labels& labels_;
  const Plan& plan_;
  std::int64_t n_member_trees_;
  MemberSums sums_;
  ForestWriter writer_;
  Spares<Bench> benches_;
  Spares<TreeRows> rows_;
  std::atomic<std::int64_t> n_waiting_{0};  // groups that no thread has begun
};

template <class AnyTable>
Forest grow_forest(const AnyTable& table, const Labels& labels, const Plan& plan,
                   std::int64_t n_threads, const Poll& poll) {
  return ForestGrower(table, labels, plan).grow(n_threads, poll);
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
  TreeRows rows{{row + branch.begin, row + branch.end}, {}, branch.middle - branch.begin};
  PageVector<double> table_weight(weight ? table.n_rows : 0);
  for (std::int64_t i = branch.begin; weight && i < branch.end; ++i)
    table_weight[row[i]] = weight[i];
  rules.beta = branch.beta;
  GrownTree tree;
  with_maker(table, [&](const auto& make) {
    Bench bench;
    std::deque<Growth<decltype(make(weight, rules, bench, stop))>> growths;
    auto& growth = growths.emplace_back(rules, std::move(rows),
                                        weight ? table_weight.data() : nullptr, make, bench, stop);
    growth.begin(branch.start);
    split_large(table, growths, stop);
    tree = growth.grower.finish(std::move(room));
  });
  return tree;
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
