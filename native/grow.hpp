// Growing one tree, node by node, as SPEC section 1 defines it.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "random.hpp"
#include "statistics.hpp"
#include "tree.hpp"

namespace lhtree {

/// The parameters of one tree.
struct Rules {
  double alpha = 0.0;
  double beta = 0.0;
  double gamma = 2.0;
  double min_samples_split = 2.0;
  std::int64_t max_depth = std::numeric_limits<std::int64_t>::max();
  double min_weight_fraction_leaf = 0.0;
  std::int64_t n_columns = 0;           // columns drawn per node; 0: all
  std::int64_t n_columns_per_tree = 0;  // columns drawn per tree; 0: all
};

/// The terms of a split or leaf, columns ascending.
struct Terms {
  std::vector<std::int32_t> feature;
  std::vector<double> weight;
  bool empty() const { return feature.empty(); }
  void clear() {
    feature.clear();
    weight.clear();
  }
};

/// A node that waits to be looked at.
struct Pending {
  std::int32_t id;
  std::int64_t depth;
  std::uint64_t key;  // of its random draws
  std::int64_t begin, middle, end;  // its part of the row array: targets, then the rest
  std::unique_ptr<Moments> moments;  // none: the node is pure
};

/// Where a node's parts end after its split: left targets, left rest, right targets.
struct Sides {
  std::int64_t left_middle, left_end, right_middle;
};

/// A constant that cuts the projections, and the rule that chose it.
struct Threshold {
  double value;
  Rule rule;
};

/// Columns whose contrast tells the classes apart: step 2 before `beta`.
inline void find_usable_columns(const Moments& moments, std::int64_t n_features,
                                const Rules& rules, std::vector<std::int32_t>& usable) {
  usable.clear();
  for (std::int64_t j = 0; j < n_features; ++j) {
    if (moments.is_fixed[j]) continue;
    const double variance = moments.variance(j);
    if (variance > rules.alpha && moments.has_contrast(j, variance))
      usable.push_back(static_cast<std::int32_t>(j));
  }
}

/// Step 2: the weights of the split, none if no column is left.
inline void choose_weights(const Moments& moments, std::int64_t n_features, const Rules& rules,
                           std::uint64_t key, Terms& terms) {
  terms.clear();
  std::vector<std::int32_t>& usable = terms.feature;
  find_usable_columns(moments, n_features, rules, usable);
  if (rules.n_columns > 0 && rules.n_columns < static_cast<std::int64_t>(usable.size())) {
    shuffle_columns(key, usable);
    usable.resize(rules.n_columns);
    std::sort(usable.begin(), usable.end());
  }
  double widest = 0.0;
  for (const std::int32_t j : usable) widest = std::max(widest, std::abs(moments.contrast(j)));
  std::size_t n_kept = 0;
  for (const std::int32_t j : usable) {
    const double weight = moments.contrast(j) / widest;
    if (std::abs(weight) < rules.beta || weight == 0.0) continue;
    usable[n_kept++] = j;
    terms.weight.push_back(weight);
  }
  usable.resize(n_kept);
}

/// Step 4: cut off the largest pure piece, or go through the middle.
inline Threshold choose_threshold(const double* score, const NodeRows& rows,
                                  const Extremes& target, const Extremes& rest, double gamma) {
  const Outside targets = count_outside(score, rows.target, rest.min, rest.max);
  const Outside others = count_outside(score + rows.target.size, rows.rest, target.min, target.max);
  const double n1 = targets.below, n2 = targets.above, n3 = others.below, n4 = others.above;
  const double largest = std::max(std::max(n1, n2), std::max(n3, n4));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (largest >= gamma) {
    if (n1 == largest) return {rest.min, Rule::n1};
    if (n2 == largest) return {std::nextafter(rest.max, infinity), Rule::n2};
    if (n3 == largest) return {target.min, Rule::n3};
    return {std::nextafter(target.max, infinity), Rule::n4};
  }
  const double lowest = std::min(target.min, rest.min), highest = std::max(target.max, rest.max);
  double middle = rest.min / 4 + rest.max / 4 + target.min / 4 + target.max / 4;
  // Rounding may carry the middle of neighbouring numbers onto or past an end.
  if (!(middle > lowest)) middle = std::nextafter(lowest, infinity);
  return {std::min(middle, highest), Rule::middle};
}

/// Grows one tree; holds what all its nodes share.
template <class T>
class Grower {
 public:
  Grower(const Table<T>& table, const Rules& rules, const double* weight, const StopFlag& stop)
      : all_rows_(table), all_weight_(weight), rules_(rules), stop_(stop), near_rows_(0, table) {}

  GrownTree grow(std::vector<std::uint32_t>& row, std::int64_t n_targets, std::uint64_t key) {
    row_ = row.data();
    score_.resize(row.size());
    leave_near();
    const auto n_rows = static_cast<std::int64_t>(row.size());
    tree_.node.emplace_back();
    std::vector<Pending> stack;
    stack.push_back({0, 0, key, 0, n_targets, n_rows, nullptr});
    if (n_targets > 0 && n_targets < n_rows) stack[0].moments = sum_root(stack[0]);
    min_weight_ = rules_.min_weight_fraction_leaf *
                  (sum_weight(rows_of(stack[0]).target) + sum_weight(rows_of(stack[0]).rest));
    while (!stack.empty()) {
      check_stop(stop_);
      Pending node = std::move(stack.back());
      stack.pop_back();
      if (is_near_ && stack.size() < near_level_) leave_near();
      if (!is_near_ && node.moments && fits_near(node)) enter_near(node, stack.size());
      visit(std::move(node), stack);
    }
    return std::move(tree_);
  }

 private:
  NodeRows rows_of(const Pending& node) const {
    return {{row_ + node.begin, node.middle - node.begin, weight_},
            {row_ + node.middle, node.end - node.middle, weight_}};
  }

  // Once a node's rows fit into a fast cache they are copied side by side, and its
  // whole subtree, which is finished before any other node, works on the copy.

  bool fits_near(const Pending& node) const {
    constexpr std::int64_t near_bytes = 1 << 19;  // half of a common second-level cache
    const std::int64_t n = node.end - node.begin;
    return n * all_rows_.width * static_cast<std::int64_t>(sizeof(T)) <= near_bytes;
  }

  void enter_near(const Pending& node, std::size_t level) {
    const std::int64_t n = node.end - node.begin;
    if (near_rows_.n_rows < n) near_rows_ = Table<T>(n, all_rows_);
    if (all_weight_) near_weight_.resize(n);
    for (std::int64_t i = 0; i < n; ++i) {
      std::uint32_t& row = row_[node.begin + i];
      near_rows_.assign(i, all_rows_.row(row));
      if (all_weight_) near_weight_[i] = all_weight_[row];
      row = static_cast<std::uint32_t>(i);
    }
    is_near_ = true;
    near_level_ = level;
    table_ = &near_rows_;
    weight_ = all_weight_ ? near_weight_.data() : nullptr;
  }

  void leave_near() {
    is_near_ = false;
    table_ = &all_rows_;
    weight_ = all_weight_;
  }

  std::unique_ptr<Moments> take_moments() {
    if (spare_.empty()) return std::make_unique<Moments>(table_->width);
    std::unique_ptr<Moments> moments = std::move(spare_.back());
    spare_.pop_back();
    return moments;
  }

  std::unique_ptr<Moments> sum_root(const Pending& root) {
    std::unique_ptr<Moments> moments = take_moments();
    const std::int64_t n_kept = rules_.n_columns_per_tree;
    if (n_kept > 0 && n_kept < table_->n_columns) {
      std::vector<std::int32_t> column(table_->n_columns);
      std::iota(column.begin(), column.end(), 0);
      shuffle_columns(root.key, column);
      for (std::int64_t k = n_kept; k < table_->n_columns; ++k) moments->is_fixed[column[k]] = 1;
    }
    sum_exactly(*table_, rows_of(root), *moments, stop_);
    return moments;
  }

  void visit(Pending node, std::vector<Pending>& stack) {
    const NodeRows rows = rows_of(node);
    describe(node, rows);
    if (!node.moments) return;  // pure: a constant leaf
    settle(*table_, rows, *node.moments, stop_);
    if (!split(node, rows, stack)) finish_leaf(node);
    if (node.moments) spare_.push_back(std::move(node.moments));
  }

  void describe(const Pending& pending, const NodeRows& rows) {
    Node& node = tree_.node[pending.id];
    const double weight_target = sum_weight(rows.target);
    node.n_samples = rows.size();
    node.weight_sum = weight_target + sum_weight(rows.rest);
    node.share = weight_target / node.weight_sum;
    node.threshold = node.share;
    node.first_term = static_cast<std::int64_t>(tree_.weight.size());
  }

  /// Steps 1 to 5; false if the node must be a leaf.
  bool split(Pending& node, const NodeRows& rows, std::vector<Pending>& stack) {
    if (node.depth >= rules_.max_depth) return false;
    if (node.moments->weight() < rules_.min_samples_split) return false;
    choose_weights(*node.moments, table_->n_columns, rules_, node.key, terms_);
    if (terms_.empty()) return false;
    project_rows(node);
    const Extremes target = find_extremes(score_.data(), rows.target.size);
    const Extremes rest = find_extremes(score_.data() + rows.target.size, rows.rest.size);
    if (std::min(target.min, rest.min) == std::max(target.max, rest.max)) return false;
    const Threshold threshold =
        choose_threshold(score_.data(), rows, target, rest, rules_.gamma);
    if (!sides_are_heavy_enough(rows, threshold.value)) return false;
    const Sides sides = partition(node, threshold.value);
    assert(node.begin < sides.left_end && sides.left_end < node.end);  // the paper's Theorem 1

    Node& record = tree_.node[node.id];
    record.rule = threshold.rule;
    record.threshold = threshold.value;
    record.extremes = {target.min, target.max, rest.min, rest.max};
    record.norm = norm_of(terms_);
    record.left = static_cast<std::int32_t>(tree_.node.size());
    store_terms(record, *node.moments);
    tree_.node.resize(tree_.node.size() + 2);
    push_children(node, sides, stack);
    return true;
  }

  void project_rows(const Pending& node) {
    const bool is_dense = static_cast<std::int64_t>(terms_.weight.size()) == table_->n_columns;
    const FormView form{is_dense ? nullptr : terms_.feature.data(), terms_.weight.data(),
                        static_cast<std::int64_t>(terms_.weight.size()), false};
    const Place place = is_near_ ? Place::near : Place::far;
    constexpr std::int64_t piece = 256;
    const T* row[piece];
    for (std::int64_t begin = node.begin; begin < node.end; begin += piece) {
      if ((begin - node.begin) % (16 * piece) == 0) check_stop(stop_);
      const std::int64_t n = std::min(piece, node.end - begin);
      for (std::int64_t i = 0; i < n; ++i) row[i] = table_->row(row_[begin + i]);
      project(row, n, form, place, score_.data() + (begin - node.begin));
    }
  }

  bool sides_are_heavy_enough(const NodeRows& rows, double threshold) const {
    if (min_weight_ <= 0.0) return true;
    const double* score = score_.data();
    constexpr double none = std::numeric_limits<double>::infinity();
    const double left = count_outside(score, rows.target, threshold, none).below +
                        count_outside(score + rows.target.size, rows.rest, threshold, none).below;
    const double weight = sum_weight(rows.target) + sum_weight(rows.rest);
    return left >= min_weight_ && weight - left >= min_weight_;
  }

  static double norm_of(const Terms& terms) {
    Lanes sum = fill(0.0);
    for (std::size_t k = 0; k < terms.weight.size(); ++k)
      sum[terms.feature[k] % lane_count] += terms.weight[k] * terms.weight[k];
    return std::sqrt(combine(sum));
  }

  void store_terms(Node& record, const Moments& moments) {
    record.n_terms = static_cast<std::int64_t>(terms_.weight.size());
    for (std::size_t k = 0; k < terms_.weight.size(); ++k) {
      const std::int32_t j = terms_.feature[k];
      tree_.feature.push_back(j);
      tree_.weight.push_back(terms_.weight[k]);
      tree_.center.push_back(moments.mean(j));
      tree_.deviation.push_back(std::sqrt(std::max(moments.variance(j), 0.0)));
    }
  }

  /// A leaf's line: each column on its own against the target indicator.
  void finish_leaf(const Pending& node) {
    const Moments& moments = *node.moments;
    if (std::min(moments.weight_target, moments.weight_rest) < min_weight_) return;
    terms_.clear();
    for (std::int64_t j = 0; j < table_->n_columns; ++j) {
      const double variance = moments.variance(j);
      if (moments.is_fixed[j] || !(variance > 0.0) || !moments.has_contrast(j, variance)) continue;
      const double slope = moments.slope(j);
      if (!std::isfinite(slope) || slope == 0.0) continue;  // squares so small that they vanish
      terms_.feature.push_back(static_cast<std::int32_t>(j));
      terms_.weight.push_back(slope);
    }
    store_terms(tree_.node[node.id], moments);
  }

  /// Move the node's rows to [left targets, left rest, right targets, right rest],
  /// each in its old order.
  Sides partition(const Pending& node, double threshold) {
    right_.clear();
    std::int64_t n_left = node.begin;
    const auto sweep = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        if (score_[i - node.begin] < threshold)
          row_[n_left++] = row_[i];
        else
          right_.push_back(row_[i]);
      }
    };
    sweep(node.begin, node.middle);
    const std::int64_t left_middle = n_left;
    const auto n_right_targets = static_cast<std::int64_t>(right_.size());
    sweep(node.middle, node.end);
    std::copy(right_.begin(), right_.end(), row_ + n_left);
    return {left_middle, n_left, n_left + n_right_targets};
  }

  void push_children(Pending& node, const Sides& sides, std::vector<Pending>& stack) {
    const auto [left_middle, left_end, right_middle] = sides;
    const std::int32_t id = tree_.node[node.id].left;
    Pending left{id, node.depth + 1, child_key(node.key, false), node.begin, left_middle,
                 left_end, nullptr};
    Pending right{id + 1, node.depth + 1, child_key(node.key, true), left_end, right_middle,
                  node.end, nullptr};
    const bool left_is_larger = left.end - left.begin > right.end - right.begin;
    Pending& larger = left_is_larger ? left : right;
    Pending& smaller = left_is_larger ? right : left;
    share_moments(node, larger, smaller);
    // The smaller child on top: the stack then never holds more than log2(n) nodes.
    stack.push_back(std::move(larger));
    stack.push_back(std::move(smaller));
  }

  static bool is_mixed(const NodeRows& rows) { return rows.target.size > 0 && rows.rest.size > 0; }

  /// Give the mixed children their sums: the smaller one is summed, the larger
  /// one gets the parent's minus these, as long as rounding stays bounded.
  void share_moments(Pending& node, Pending& larger, Pending& smaller) {
    const NodeRows large = rows_of(larger), small = rows_of(smaller);
    const bool subtracts = is_mixed(large) && 2 * large.size() > node.moments->n_exact;
    if (subtracts || is_mixed(small)) {
      smaller.moments = sum_child(*node.moments, small);
    }
    if (subtracts) {
      subtract(*node.moments, *smaller.moments, large);
      larger.moments = std::move(node.moments);
    } else if (is_mixed(large)) {
      larger.moments = sum_child(*node.moments, large);
    }
    if (smaller.moments && !is_mixed(small)) spare_.push_back(std::move(smaller.moments));
  }

  std::unique_ptr<Moments> sum_child(const Moments& parent, const NodeRows& rows) {
    std::unique_ptr<Moments> moments = take_moments();
    moments->origin = parent.origin;
    moments->is_fixed = parent.is_fixed;
    sum_exactly(*table_, rows, *moments, stop_);
    return moments;
  }

  const Table<T>& all_rows_;
  const double* all_weight_;  // [n_rows of the table] or null
  const Rules& rules_;
  const StopFlag& stop_;
  Table<T> near_rows_;
  std::vector<double> near_weight_;
  bool is_near_ = false;
  std::size_t near_level_ = 0;  // height of the stack below the subtree that works on the copy
  const Table<T>* table_ = nullptr;  // where the rows of the node at hand are
  const double* weight_ = nullptr;
  double min_weight_ = 0.0;  // least weight of a side of a split
  std::uint32_t* row_ = nullptr;
  GrownTree tree_;
  Terms terms_;
  std::vector<double> score_;         // projections of the node at hand
  std::vector<std::uint32_t> right_;  // rows on their way to the right child
  std::vector<std::unique_ptr<Moments>> spare_;
};

}  // namespace lhtree
