// Finished trees become the flat arrays of a forest, one after the other.
//
// A tree is written as soon as all before it are, so that no more complete trees than threads
// are kept beside the arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "pages.hpp"
#include "spares.hpp"
#include "tree.hpp"

namespace lhtree {

/// The arrays of a grown forest; see ForestView for their meaning.
///
/// Growing takes less memory if numbers are no wider than they need to be and what follows
/// from others is left out: children, places of terms, and what leaves do not have.
/// `complete` in lhtree/packing.py adds it once the training rows have gone.
struct Forest {
  PageVector<std::int64_t> tree_start;
  PageVector<std::int32_t> target, n_terms;
  PageVector<std::int32_t> feature;         // empty if all columns have short numbers
  PageVector<std::uint16_t> short_feature;  // empty otherwise
  PageVector<double> weight, center, deviation, share;
  PageVector<double> threshold, norm, extremes;  // of the splits alone
  PageVector<std::uint32_t> n_samples;
  PageVector<double> weight_sum;  // empty as long as every row counts once
  PageVector<std::int8_t> rule;
};

class ForestWriter {
 public:
  /// Tree number i has target[i mod size].
  ForestWriter(std::int64_t n_trees, std::vector<std::int32_t> target, std::int64_t n_features)
      : target_(std::move(target)), n_features_(n_features), waiting_(n_trees) {
    forest_.tree_start.push_back(0);
  }

  /// Take a tree from any thread.
  void add(std::int64_t number, GrownTree tree) {
    const std::lock_guard lock(mutex_);
    waiting_[number] = std::move(tree);
    while (next_ < waiting_.size() && !waiting_[next_].node.empty()) {
      GrownTree ready = std::exchange(waiting_[next_], {});
      if (!fit_floats(ready.deviation)) widen_deviations();
      make_room(ready);
      append(ready, target_[next_ % target_.size()]);
      ++next_;
      ready.clear();
      rooms_.give(std::move(ready));
    }
  }

  /// An empty tree, with the memory of one that has been written if there is one.
  GrownTree take_room() { return rooms_.take(); }

  /// The arrays of all trees.
  Forest finish() {
    widen_deviations();
    return std::move(forest_);
  }

 private:
  /// Room for the tree and for those that are expected to follow: growing step by step
  /// would hold an array twice, and pages that are never written take no memory.
  void make_room(const GrownTree& tree) {
    const std::size_t n_nodes = tree.node.size(), n_terms = tree.weight.size();
    const std::size_t n_splits = n_nodes / 2;
    make_room(n_nodes, forest_.n_samples, forest_.n_terms, forest_.share, forest_.rule);
    if (!forest_.weight_sum.empty()) make_room(n_nodes, forest_.weight_sum);
    make_room(n_splits, forest_.threshold, forest_.norm);
    make_room(4 * n_splits, forest_.extremes);
    const std::size_t n_before = forest_.weight.capacity();
    make_room(n_terms, forest_.weight, forest_.center);
    if (!has_short_deviations_) make_room(n_terms, forest_.deviation);
    if (forest_.weight.capacity() > n_before) use_large_pages(forest_.weight);
    std::size_t n_listed = 0;
    for (const Node& node : tree.node) n_listed += is_dense(node) ? 0 : node.n_terms;
    if (has_short_features())
      make_room(n_listed, forest_.short_feature);
    else
      make_room(n_listed, forest_.feature);
  }

  template <class... Array>
  void make_room(std::size_t n_more, Array&... array) {
    (reserve(array, array.size() + n_more), ...);
  }

  template <class Array>
  void reserve(Array& array, std::size_t n_needed) {
    constexpr std::size_t most_more = (std::size_t{1} << 30) / sizeof(array[0]);
    if (n_needed <= array.capacity()) return;
    const double n_ahead = static_cast<double>(waiting_.size()) / static_cast<double>(next_ + 1);
    const double n_expected = 1.25 * n_ahead * static_cast<double>(n_needed);
    const double n_most = static_cast<double>(n_needed + most_more);
    try {
      array.reserve(static_cast<std::size_t>(std::min(n_expected, n_most)));
    } catch (const std::bad_alloc&) {
      array.reserve(n_needed);
    }
  }

  static bool fit_floats(const PageVector<double>& values) {
    return std::all_of(values.begin(), values.end(), [](double value) {
      return static_cast<double>(static_cast<float>(value)) == value;
    });
  }

  /// From now on deviations are doubles. Those of a tree are freed before the next are copied.
  void widen_deviations() {
    has_short_deviations_ = false;
    make_room(forest_.weight.size() - forest_.deviation.size(), forest_.deviation);
    for (PageVector<float>& tree : short_deviation_) {
      forest_.deviation.insert(forest_.deviation.end(), tree.begin(), tree.end());
      PageVector<float>().swap(tree);
    }
    short_deviation_.clear();
  }

  bool is_dense(const Node& node) const { return node.n_terms == n_features_; }
  bool has_short_features() const { return n_features_ <= std::int64_t{1} << 16; }

  /// Write the nodes breadth-first.
  void append(GrownTree& tree, std::int32_t target) {
    const std::vector<std::int32_t> order = breadth_first(tree.node);
    for (const std::int32_t id : order) {
      const Node& node = tree.node[id];
      forest_.rule.push_back(static_cast<std::int8_t>(node.rule));
      forest_.share.push_back(node.share);
      forest_.n_terms.push_back(static_cast<std::int32_t>(node.n_terms));
      append_size(node);
      if (node.left >= 0) append_split(node);
    }
    const auto is_any = [](const Node&) { return true; };
    const auto is_listed = [&](const Node& node) { return !is_dense(node); };
    append_terms(tree.node, order, is_any, tree.weight, forest_.weight);
    append_terms(tree.node, order, is_any, tree.center, forest_.center);
    if (has_short_deviations_) {
      short_deviation_.emplace_back().reserve(tree.deviation.size());
      append_terms(tree.node, order, is_any, tree.deviation, short_deviation_.back());
    } else {
      append_terms(tree.node, order, is_any, tree.deviation, forest_.deviation);
    }
    if (has_short_features())
      append_terms(tree.node, order, is_listed, tree.feature, forest_.short_feature);
    else
      append_terms(tree.node, order, is_listed, tree.feature, forest_.feature);
    forest_.target.push_back(target);
    forest_.tree_start.push_back(static_cast<std::int64_t>(forest_.rule.size()));
  }

  void append_size(const Node& node) {
    const bool is_weighted = node.weight_sum != static_cast<double>(node.n_samples);
    if (is_weighted && forest_.weight_sum.empty())  // so far every row counted once
      forest_.weight_sum.assign(forest_.n_samples.begin(), forest_.n_samples.end());
    if (is_weighted || !forest_.weight_sum.empty()) forest_.weight_sum.push_back(node.weight_sum);
    forest_.n_samples.push_back(static_cast<std::uint32_t>(node.n_samples));
  }

  void append_split(const Node& node) {
    forest_.threshold.push_back(node.threshold);
    forest_.norm.push_back(node.norm);
    forest_.extremes.insert(forest_.extremes.end(), node.extremes.begin(), node.extremes.end());
  }

  /// Write an array of terms. Nothing grows in the memory of the last tree: it is freed.
  template <class From, class To, class Test>
  void append_terms(const std::vector<Node>& node, const std::vector<std::int32_t>& order,
                    const Test& has_terms, From& from, To& to) {
    for (const std::int32_t id : order) {
      if (!has_terms(node[id])) continue;
      const auto first = from.begin() + node[id].first_term;
      to.insert(to.end(), first, first + node[id].n_terms);
    }
    if (next_ + 1 == waiting_.size()) From().swap(from);
  }

  std::vector<std::int32_t> target_;
  std::int64_t n_features_;
  Spares<GrownTree> rooms_;         // empty trees
  std::mutex mutex_;                // guards all below
  std::vector<GrownTree> waiting_;  // trees that others still have to precede
  std::size_t next_ = 0;            // the tree to be written next
  // Deviations have the digits of floats, but for tiny ones: as long as all do, they are kept so,
  // tree by tree.
  bool has_short_deviations_ = true;
  std::vector<PageVector<float>> short_deviation_;
  Forest forest_;
};

}  // namespace lhtree
