// Growing one tree, node by node.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

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

/// Euclidean length of the weights.
inline double find_norm(const Terms& terms) {
  Lanes sum = fill(0.0);
  for (std::int64_t k = 0; k < terms.size(); ++k)
    sum.add(terms.feature[k] % lane_count, terms.weight[k] * terms.weight[k]);
  return std::sqrt(combine(sum));
}

/// Add a column's part of a leaf's line, if it has one.
inline void add_slope(Terms& terms, std::int64_t j, const ColumnMoments& column) {
  const double variance = column.variance();
  if (!(variance > 0.0) || !column.has_contrast(variance)) return;
  const double slope = column.slope();
  if (std::isfinite(slope) && slope != 0.0)  // squares may be so small that they vanish
    terms.add(j, slope, column.mean(), variance);
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
/// Nodes wait on a stack, the smaller child on top: it never holds more than log2(n)
/// nodes, and a subtree is finished before its sibling begins.
template <class Splitter>
class Grower {
 public:
  using Waiting = Pending<typename Splitter::State>;

  /// `room` is an empty tree whose memory may be used.
  Grower(Splitter& splitter, const Rules& rules, const StopFlag& stop, GrownTree room)
      : splitter_(splitter), rules_(rules), stop_(stop), tree_(std::move(room)) {}

  GrownTree grow(PageVector<std::uint32_t>& row, std::int64_t n_targets, const Start& start) {
    row_ = row.data();
    tree_.node.emplace_back();
    const auto n_rows = static_cast<std::int64_t>(row.size());
    Waiting root{0, start.depth, start.key, 0, n_targets, n_rows, {}};
    const NodeRows rows = rows_of(root);
    const double weight_sum =
        start.weight_sum < 0.0 ? sum_weight(rows.target) + sum_weight(rows.rest) : start.weight_sum;
    min_weight_ = rules_.min_weight_fraction_leaf * weight_sum;
    if (rows.is_mixed()) root.state = splitter_.begin(rows, start.tree_key);
    std::vector<Waiting> stack;
    stack.push_back(std::move(root));
    while (!stack.empty()) {
      check_stop(stop_);
      Waiting node = std::move(stack.back());
      stack.pop_back();
      splitter_.enter(node, row_, stack.size());
      visit(node, stack);
    }
    if (rules_.prunes()) Pruner(tree_).prune(rules_);
    return std::move(tree_);
  }

 private:
  NodeRows rows_of(const Waiting& node) const {
    const double* weight = splitter_.weight();
    return {{row_ + node.begin, node.middle - node.begin, weight},
            {row_ + node.middle, node.end - node.middle, weight}};
  }

  void visit(Waiting& node, std::vector<Waiting>& stack) {
    const NodeRows rows = rows_of(node);
    describe(tree_.node[node.id], rows);
    if (rules_.prunes()) note_targets(node.id, rows);
    if (!rows.is_mixed()) return;                  // pure: a constant leaf
    if (rules_.prunes()) finish_leaf(node, rows);  // whether it stays one is seen at the end
    if (!split(node, rows, stack) && !rules_.prunes()) finish_leaf(node, rows);
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

  /// False if the node must be a leaf.
  bool split(Waiting& node, const NodeRows& rows, std::vector<Waiting>& stack) {
    if (node.depth >= rules_.max_depth) return false;
    if (tree_.node[node.id].weight_sum < rules_.min_samples_split) return false;
    if (!splitter_.choose(rows, node.state, node.key, min_weight_, split_)) return false;
    const Sides sides = partition(node, split_);
    assert(node.begin < sides.left_end && sides.left_end < node.end);  // the paper's Theorem 1

    Node& record = tree_.node[node.id];
    record.rule = split_.threshold.rule;
    record.threshold = split_.threshold.value;
    record.extremes = {split_.target.min, split_.target.max, split_.rest.min, split_.rest.max};
    record.norm = find_norm(split_.terms);
    record.left = static_cast<std::int32_t>(tree_.node.size());
    if (rules_.prunes()) {
      tree_.as_leaf[node.id].first_term = record.first_term;
      tree_.as_leaf[node.id].n_terms = record.n_terms;
    }
    store_terms(record, split_.terms);
    tree_.node.resize(tree_.node.size() + 2);
    push_children(node, sides, stack);
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
    Terms& terms = split_.terms;
    terms.clear();
    splitter_.visit_columns(rows, node.state, [&](std::int64_t j, const ColumnMoments& column) {
      add_slope(terms, j, column);
    });
    store_terms(tree_.node[node.id], terms);
  }

  /// Move the node's rows to [left targets, left rest, right targets, right rest],
  /// each in its old order.
  Sides partition(const Waiting& node, const Split& split) {
    const auto n = static_cast<std::size_t>(node.end - node.begin);
    if (right_.size() < n) right_.resize(n);
    std::int64_t n_left = node.begin, n_right = 0;
    // Both sides are written for every row: which one counts is hard to predict.
    const auto sweep = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::uint32_t row = row_[i];
        const std::int64_t is_left = split.score[i - node.begin] < split.threshold.value;
        row_[n_left] = row;
        right_[n_right] = row;
        n_left += is_left;
        n_right += 1 - is_left;
      }
    };
    sweep(node.begin, node.middle);
    const std::int64_t left_middle = n_left, n_right_targets = n_right;
    sweep(node.middle, node.end);
    std::copy_n(right_.begin(), n_right, row_ + n_left);
    return {left_middle, n_left, n_left + n_right_targets};
  }

  void push_children(Waiting& node, const Sides& sides, std::vector<Waiting>& stack) {
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
    stack.push_back(std::move(larger));
    stack.push_back(std::move(smaller));
  }

  Splitter& splitter_;
  const Rules& rules_;
  const StopFlag& stop_;
  double min_weight_ = 0.0;  // least weight of a side of a split
  std::uint32_t* row_ = nullptr;
  GrownTree tree_;
  Split split_;
  PageVector<std::uint32_t> right_;  // rows on their way to the right child
};

}  // namespace lhtree
