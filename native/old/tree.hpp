// Trees as flat arrays: one that is being grown, and a view of a finished forest.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pages.hpp"
#include "projection_kernels.hpp"

namespace lhtree {

/// What chose the threshold of a split.
enum class Rule : std::int8_t { leaf = 0, n1 = 1, n2 = 2, n3 = 3, n4 = 4, middle = 5, gini = 6 };

/// One node of a tree that is being grown.
struct Node {
  std::int32_t left = -1;  // left child; right = left + 1; -1: leaf
  Rule rule = Rule::leaf;
  double threshold = 0.0;      // a split's constant; a leaf's share of targets
  double norm = 0.0;           // Euclidean length of a split's weights; 0 in a leaf
  double share = 0.0;          // weighted share of targets
  double weight_sum = 0.0;     // weighted number of rows
  std::int64_t n_samples = 0;  // number of rows
  std::int64_t first_term = 0;
  std::int64_t n_terms = 0;
  std::array<double, 4> extremes{};  // of the projections: min and max of targets, then of the rest
};

/// What a node would answer if it were a leaf, and the weight of its targets.
struct LeafAnswer {
  double weight_target = 0.0;
  std::int64_t first_term = 0;
  std::int64_t n_terms = 0;
};

/// A tree in the order of its growth.
struct GrownTree {
  std::vector<Node> node;
  std::vector<LeafAnswer> as_leaf;   // [n_nodes] if splits may become leaves, else empty
  PageVector<std::int32_t> feature;  // terms of all nodes
  PageVector<double> weight;         // a split's weight, a leaf's slope
  PageVector<double> center;         // mean of the column in the node
  PageVector<double> deviation;      // its deviation there

  /// Make it empty; its memory stays.
  void clear() {
    node.clear();
    as_leaf.clear();
    feature.clear();
    weight.clear();
    center.clear();
    deviation.clear();
  }
};

/// The nodes of a tree in breadth-first order; children stay side by side.
inline std::vector<std::int32_t> breadth_first(const std::vector<Node>& node) {
  std::vector<std::int32_t> order{0};
  order.reserve(node.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int32_t left = node[order[k]].left;
    if (left < 0) continue;
    order.push_back(left);
    order.push_back(left + 1);
  }
  return order;
}

/// A finished forest: the nodes of all trees one after the other, each tree
/// breadth-first. Child numbers count from the tree's root.
struct ForestView {
  std::int64_t n_trees;
  std::int64_t n_features;
  std::int64_t n_all_terms;
  const std::int64_t* tree_start;     // [n_trees + 1] first node of each tree
  const std::int32_t* target;         // [n_trees] class that the tree separates
  const std::int32_t* left;           // [n_nodes]
  const std::int64_t* start;          // [n_nodes + 1] node i owns terms start[i]..start[i+1]
  const std::int64_t* feature_start;  // [n_nodes + 1] its columns; none: all columns in order
  const std::int32_t* feature;
  const double* weight;
  const double* center;
  const double* threshold;        // [n_nodes]
  const double* norm;             // [n_nodes]
  const double* value;            // [n_nodes] share of targets: the constant of a leaf
  const std::int64_t* n_samples;  // [n_nodes] training rows

  /// The child that most training rows went to.
  std::int64_t larger_child(std::int64_t root, std::int64_t node) const {
    const std::int64_t child = root + left[node];
    return n_samples[child] >= n_samples[child + 1] ? child : child + 1;
  }

  bool is_dense_split(std::int64_t node) const {
    return left[node] >= 0 && start[node + 1] - start[node] == n_features;
  }

  /// Ask for what a visit of the node will read first.
  void prefetch_node(std::int64_t node) const {
    prefetch(left + node, 1);
    prefetch(start + node, 2);
    prefetch(feature_start + node, 1);
    prefetch(threshold + node, 1);
    prefetch(norm + node, 1);
  }

  /// The linear form of a node, with its centers if rows have missing values. The rows
  /// that it meets are padded with zeros.
  FormView form(std::int64_t node, bool has_missing = false) const {
    const std::int64_t n_terms = start[node + 1] - start[node];
    const std::int32_t* column = n_terms == n_features ? nullptr : feature + feature_start[node];
    const bool is_padded = start[node] + padded(n_features) <= n_all_terms;
    return {column, weight + start[node], n_terms, is_padded,
            has_missing ? center + start[node] : nullptr};
  }
};

}  // namespace lhtree
