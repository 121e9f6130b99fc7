// Growing one tree, node by node.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "contrast.hpp"
#include "node.hpp"
#include "pages.hpp"
#include "prune.hpp"
#include "random.hpp"
#include "rules.hpp"
#include "stop.hpp"
#include "threshold.hpp"
#include "tree.hpp"

namespace lhtree {

/// Where a node's parts end after its split: left targets, left rest, right targets.
struct Sides {
  std::int64_t left_middle, left_end, right_middle;
};

/// Move the values that go to the left to the front and the others behind them, each in their old
/// order; `room` is for `n` more. Returns how many go to the left.
template <class Value>
std::int64_t move_left(Value* value, const std::uint8_t* is_left, std::int64_t n,
                       std::uint32_t* room) {
  static_assert(sizeof(Value) == sizeof(*room));
  constexpr std::int64_t step = 8;
  constexpr std::uint64_t all_left = 0x0101010101010101;
  std::int64_t n_left = 0, n_right = 0;
  // Splits that cut off a small piece leave most values with all their neighbours.
  const auto move_together = [&](std::int64_t begin) {
    std::uint64_t sides;
    std::memcpy(&sides, is_left + begin, step);
    if (sides != all_left && sides != 0) return false;
    if (sides == all_left) {
      std::memmove(value + n_left, value + begin, step * sizeof(Value));
      n_left += step;
    } else {
      std::memcpy(room + n_right, value + begin, step * sizeof(Value));
      n_right += step;
    }
    return true;
  };
  // Both sides are written for every value: which one counts is hard to predict.
  const auto move_each = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Value moved = value[i];
      value[n_left] = moved;
      room[n_right] = std::bit_cast<std::uint32_t>(moved);
      n_left += is_left[i];
      n_right += 1 - is_left[i];
    }
  };
  const std::int64_t n_whole = n / step * step;
  for (std::int64_t i = 0; i < n_whole; i += step)
    if (!move_together(i)) move_each(i, i + step);
  move_each(n_whole, n);
  std::memcpy(value + n_left, room, n_right * sizeof(Value));
  return n_left;
}

/// Where growing starts: at a root, or at a node whose tree was begun elsewhere.
struct Start {
  std::uint64_t key;       // of the node's random draws
  std::uint64_t tree_key;  // of the tree's: that of its root
  std::int64_t depth = 0;
  double weight_sum = -1.0;  // of all rows of the tree; negative: of the rows given
};

/// Grows one tree; the splitter says how its nodes are split.
///
/// Nodes wait on a stack, the smaller child on top: a subtree is finished before its sibling
/// begins, and what is not large never fills it with more than log2(n) nodes. Large nodes, if the
/// splitter knows such, come first: they wait for sweeps, see sweep.hpp.
template <class Splitter>
class Grower {
 public:
  using Waiting = Pending<typename Splitter::State>;

  Grower(Splitter& splitter, const Rules& rules, const StopFlag& stop, Bench& bench)
      : splitter_(splitter), rules_(rules), stop_(stop), bench_(bench) {}

  /// Begin with the root. The rows must stay where they are.
  void begin(TreeRows& tree_rows, const Start& start) {
    row_ = tree_rows.row.data();
    tree_.node.emplace_back();
    const auto n_rows = static_cast<std::int64_t>(tree_rows.row.size());
    Waiting root{0, start.depth, start.key, 0, tree_rows.n_targets, n_rows, {}};
    const NodeRows rows = rows_of(root);
    const double weight_sum =
        start.weight_sum < 0.0 ? sum_weight(rows.target) + sum_weight(rows.rest) : start.weight_sum;
    min_weight_ = rules_.min_weight_fraction_leaf * weight_sum;
    if (rows.is_mixed()) root.state = splitter_.begin(rows, start.tree_key);
    if constexpr (requires { splitter_.remembers(); }) {
      if (rows.is_mixed() && splitter_.remembers()) {
        remake(tree_rows.known, tree_rows.row.size());
        known_ = tree_rows.known.data();
      }
    }
    wait(std::move(root));
  }

  /// Split large nodes until those that are left must be projected first: they join the sweep. To
  /// be called again after it, until none joins.
  template <class Sweep>
  void split_large(Sweep& sweep) {
    for (Waiting& node : std::exchange(swept_, {})) {
      splitter_.finish_sweep(rows_of(node), node.state);
      visit(node);
    }
    while (!large_.empty()) {
      check_stop(stop_);
      Waiting node = take_last(large_);
      const NodeRows rows = rows_of(node);
      const double weight_sum = sum_weight(rows.target) + sum_weight(rows.rest);
      if (may_split(node, weight_sum) && splitter_.join(rows, node.state, sweep))
        swept_.push_back(std::move(node));
      else
        visit(node);
    }
  }

  /// Grow what is left of the tree. `room` is an empty tree whose memory may be used.
  GrownTree finish(GrownTree room) {
    room = tree_;  // a copy into memory that is there
    tree_ = std::move(room);
    while (!stack_.empty()) {
      check_stop(stop_);
      Waiting node = take_last(stack_);
      splitter_.enter(node, row_, stack_.size());
      visit(node);
    }
    if (rules_.prunes()) Pruner(tree_).prune(rules_);
    return std::move(tree_);
  }

 private:
  NodeRows rows_of(const Waiting& node) {
    const double* weight = splitter_.weight();
    return {{row_ + node.begin, node.middle - node.begin, weight},
            {row_ + node.middle, node.end - node.middle, weight},
            known_ ? known_ + node.begin : nullptr};
  }

  static Waiting take_last(std::vector<Waiting>& nodes) {
    Waiting node = std::move(nodes.back());
    nodes.pop_back();
    return node;
  }

  void wait(Waiting node) {
    if constexpr (requires { typename Splitter::Sweep; }) {
      if (splitter_.is_large(rows_of(node))) return large_.push_back(std::move(node));
    }
    stack_.push_back(std::move(node));
  }

  void visit(Waiting& node) {
    const NodeRows rows = rows_of(node);
    describe(tree_.node[node.id], rows);
    if (rules_.prunes()) note_targets(node.id, rows);
    if (!rows.is_mixed()) return;                  // pure: a constant leaf
    if (rules_.prunes()) finish_leaf(node, rows);  // whether it stays one is seen at the end
    if (!split(node, rows) && !rules_.prunes()) finish_leaf(node, rows);
    splitter_.release(node.state);
  }

  void describe(Node& node, const NodeRows& rows) {
    const double weight_target = sum_weight(rows.target);
    node.n_samples = rows.size();
    node.weight_sum = weight_target + sum_weight(rows.rest);
    node.share = weight_target / node.weight_sum;
    node.threshold = node.share;
  }

  void note_targets(std::int32_t id, const NodeRows& rows) {
    tree_.as_leaf.resize(tree_.node.size());
    tree_.as_leaf[id].weight_target = sum_weight(rows.target);
  }

  bool may_split(const Waiting& node, double weight_sum) const {
    return node.depth < rules_.max_depth && weight_sum >= rules_.min_samples_split;
  }

  /// False if the node must be a leaf.
  bool split(Waiting& node, const NodeRows& rows) {
    if (!may_split(node, tree_.node[node.id].weight_sum)) return false;
    if (!splitter_.choose(rows, node.state, node.key, min_weight_, bench_)) return false;
    const Split& split = bench_.split;
    const Sides sides = partition(node);
    assert(node.begin < sides.left_end && sides.left_end < node.end);  // the paper's Theorem 1

    Node& record = tree_.node[node.id];
    record.rule = split.threshold.rule;
    record.threshold = split.threshold.value;
    record.extremes = {split.target.min, split.target.max, split.rest.min, split.rest.max};
    record.norm = find_norm(split.terms);
    record.left = static_cast<std::int32_t>(tree_.node.size());
    if (rules_.prunes()) {
      tree_.as_leaf[node.id].first_term = record.first_term;
      tree_.as_leaf[node.id].n_terms = record.n_terms;
    }
    store_terms(record, split.terms);
    tree_.node.resize(tree_.node.size() + 2);
    push_children(node, sides);
    return true;
  }

  void store_terms(Node& record, const Terms& terms) {
    record.first_term = static_cast<std::int64_t>(tree_.weight.size());
    record.n_terms = terms.size();
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(tree_.feature, terms.feature);
    append(tree_.weight, terms.weight);
    append(tree_.center, terms.center);
    append(tree_.deviation, terms.deviation);
  }

  /// A leaf's line: each column on its own against the target indicator.
  void finish_leaf(Waiting& node, const NodeRows& rows) {
    if (std::min(sum_weight(rows.target), sum_weight(rows.rest)) < min_weight_) return;
    Terms& terms = bench_.split.terms;
    terms.clear();
    splitter_.visit_columns(rows, node.state, [&](std::int64_t j, const ColumnMoments& column) {
      add_slope(terms, j, column);
    });
    store_terms(tree_.node[node.id], terms);
  }

  /// Move the node's rows to [left targets, left rest, right targets, right rest],
  /// each in its old order.
  Sides partition(const Waiting& node) {
    const std::int64_t n = node.end - node.begin, n_targets = node.middle - node.begin;
    const std::uint8_t* is_left = bench_.is_left.data();
    const std::int64_t n_left_targets = std::count(is_left, is_left + n_targets, 1);
    PageVector<std::uint32_t>& room = bench_.number;
    if (static_cast<std::int64_t>(room.size()) < n) room.resize(n);
    const std::int64_t n_left = move_left(row_ + node.begin, is_left, n, room.data());
    if (known_) move_left(known_ + node.begin, is_left, n, room.data());
    return {node.begin + n_left_targets, node.begin + n_left,
            node.begin + n_left + n_targets - n_left_targets};
  }

  void push_children(Waiting& node, const Sides& sides) {
    const std::int32_t id = tree_.node[node.id].left;
    const std::int64_t depth = node.depth + 1;
    Waiting left{
        id, depth, child_key(node.key, false), node.begin, sides.left_middle, sides.left_end, {}};
    Waiting right{id + 1,   depth, child_key(node.key, true), sides.left_end, sides.right_middle,
                  node.end, {}};
    const bool left_is_larger = left.end - left.begin > right.end - right.begin;
    Waiting& larger = left_is_larger ? left : right;
    Waiting& smaller = left_is_larger ? right : left;
    splitter_.divide(node.state, rows_of(larger), larger.state, rows_of(smaller), smaller.state);
    wait(std::move(larger));
    wait(std::move(smaller));
  }

  Splitter& splitter_;
  const Rules& rules_;
  const StopFlag& stop_;
  double min_weight_ = 0.0;  // least weight of a side of a split
  std::uint32_t* row_ = nullptr;
  float* known_ = nullptr;  // of each row, if the splitter remembers projections
  Bench& bench_;
  GrownTree tree_;
  std::vector<Waiting> stack_;
  std::vector<Waiting> large_;
  std::vector<Waiting> swept_;  // large nodes that have joined a sweep
};

}  // namespace lhtree
