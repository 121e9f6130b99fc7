// Small trees: splits that become leaves after the tree has grown.
//
// Splits do not depend on the order in which nodes are visited, so growing the best
// first is growing fully and keeping the best, and cutting weak links needs the whole
// tree anyway. What a split would answer as a leaf was noted while its rows were there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "rules.hpp"
#include "tree.hpp"

namespace lhtree {

/// The cuts of a tree's weakest links, one after the other, until only its root is left.
struct Links {
  std::vector<double> strength;  // [n_nodes] cost-complexity at which a split becomes a leaf;
                                 // infinite for leaves, and for splits that go with another
  std::vector<double> gain;      // [n_nodes] what the tree's risk gains by that cut
};

/// Finds them in one pass from the leaves to the root.
///
/// In a subtree all cuts below its root are known, strongest on top of a leftist heap.
/// Its root's own cut comes after those that are weaker; stronger ones never happen, so
/// they are taken back, and each is so at most once.
class LinkFinder {
 public:
  /// Nodes breadth-first: `left` holds the left child or -1, `risk` what a leaf would cost.
  LinkFinder(const std::vector<std::int32_t>& left, const std::vector<double>& risk)
      : n_cut_(left.size()), rank_(left.size()), first_(left.size(), -1), second_(left.size(), -1) {
    links_.strength.assign(left.size(), std::numeric_limits<double>::infinity());
    links_.gain.assign(left.size(), 0.0);
    std::vector<std::int32_t> top(left.size(), -1);
    for (auto i = static_cast<std::int32_t>(left.size()) - 1; i >= 0; --i) {
      if (left[i] < 0) continue;
      top[i] = merge(top[left[i]], top[left[i] + 1]);
      const double below = risk[left[i]] + risk[left[i] + 1];
      cut(i, risk[i] - below, top[i]);
      top[i] = merge(top[i], i);
    }
  }

  Links take() { return std::move(links_); }

 private:
  /// `gain` is that of the cut once both children are leaves.
  void cut(std::int32_t i, double gain, std::int32_t& top) {
    std::int64_t n_cut = 1;  // leaves that vanish
    while (top >= 0 && links_.strength[top] > gain / static_cast<double>(n_cut)) {
      gain += links_.gain[top];
      n_cut += n_cut_[top];
      links_.strength[top] = std::numeric_limits<double>::infinity();
      top = merge(first_[top], second_[top]);
    }
    links_.strength[i] = gain / static_cast<double>(n_cut);
    links_.gain[i] = gain;
    n_cut_[i] = n_cut;
    rank_[i] = 1;
  }

  /// Of equal cuts that of the node nearer to the root is on top: it undoes the other's.
  bool is_above(std::int32_t a, std::int32_t b) const {
    return links_.strength[a] > links_.strength[b] ||
           (links_.strength[a] == links_.strength[b] && a < b);
  }

  std::int32_t merge(std::int32_t a, std::int32_t b) {
    if (a < 0 || b < 0) return std::max(a, b);
    if (is_above(b, a)) std::swap(a, b);
    second_[a] = merge(second_[a], b);  // no deeper than the logarithm of the heap's size
    if (rank(first_[a]) < rank(second_[a])) std::swap(first_[a], second_[a]);
    rank_[a] = rank(second_[a]) + 1;
    return a;
  }

  std::int64_t rank(std::int32_t i) const { return i < 0 ? 0 : rank_[i]; }

  Links links_;
  std::vector<std::int64_t> n_cut_, rank_;
  std::vector<std::int32_t> first_, second_;  // children in the heap
};

/// Makes leaves of some splits of a tree that has grown.
class Pruner {
 public:
  explicit Pruner(GrownTree& tree) : tree_(tree) {}

  void prune(const Rules& rules) {
    if (rules.max_leaf_nodes > 0) keep_best(rules.max_leaf_nodes);
    if (rules.ccp_alpha > 0.0) cut_links(rules.ccp_alpha);
    tree_.as_leaf.clear();
  }

 private:
  /// Weight times half of the Gini impurity.
  double impurity(std::int32_t id) const {
    const double t = tree_.as_leaf[id].weight_target, n = tree_.node[id].weight_sum;
    return t * (n - t) / n;
  }

  void collapse(std::int32_t id) {
    Node& node = tree_.node[id];
    node.left = -1;
    node.rule = Rule::leaf;
    node.threshold = node.share;
    node.norm = 0.0;
    node.extremes = {};
    node.first_term = tree_.as_leaf[id].first_term;
    node.n_terms = tree_.as_leaf[id].n_terms;
  }

  /// Keep the splits that lower the impurity most, each after its parent; of equal ones
  /// the first breadth-first.
  void keep_best(std::int64_t max_leaf_nodes) {
    const std::vector<std::int32_t> order = breadth_first(tree_.node);
    std::vector<std::int32_t> place(tree_.node.size());
    for (std::size_t k = 0; k < order.size(); ++k) place[order[k]] = static_cast<std::int32_t>(k);
    std::priority_queue<std::pair<double, std::int32_t>> best;  // decrease, -place
    const auto wait = [&](std::int32_t id) {
      const std::int32_t left = tree_.node[id].left;
      if (left >= 0) best.push({impurity(id) - impurity(left) - impurity(left + 1), -place[id]});
    };
    wait(0);
    for (std::int64_t n_leaves = 1; n_leaves < max_leaf_nodes && !best.empty(); ++n_leaves) {
      const std::int32_t id = order[-best.top().second];
      best.pop();
      wait(tree_.node[id].left);
      wait(tree_.node[id].left + 1);
    }
    for (; !best.empty(); best.pop()) collapse(order[-best.top().second]);
  }

  void cut_links(double ccp_alpha) {
    const std::vector<std::int32_t> order = breadth_first(tree_.node);
    std::vector<std::int32_t> left(order.size());
    std::vector<double> risk(order.size());
    std::int32_t next_child = 1;
    for (std::size_t k = 0; k < order.size(); ++k) {
      left[k] = tree_.node[order[k]].left < 0 ? -1 : next_child;
      next_child += left[k] < 0 ? 0 : 2;
      risk[k] = 2.0 * impurity(order[k]) / tree_.node[0].weight_sum;
    }
    const Links links = LinkFinder(left, risk).take();
    for (std::size_t k = 0; k < order.size(); ++k)
      if (links.strength[k] <= ccp_alpha) collapse(order[k]);
  }

  GrownTree& tree_;
};

}  // namespace lhtree
