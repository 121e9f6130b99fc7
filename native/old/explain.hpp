// What each column adds to the votes for a row.
//
// On the way of a row down a tree, the share of targets changes from node to node. Each
// change is divided among the columns of the split in proportion to |weight * (value -
// center)|. A leaf adds its linear parts; what clipping cuts off is divided alike. A
// missing value (NaN) has no part.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "predict.hpp"
#include "projection_kernels.hpp"

namespace lhtree {

/// Terms of a node, and room for what each adds.
struct Parts {
  FormView form;
  const double* center;
  double* size;  // [padded(n_columns)] |part| of each term
};

/// total[column] += change * |part| / sum of |part|; |weight| stands for |part| if all are 0.
void divide_change(const double* row, const Parts& parts, double change, double* total);

/// The same in a leaf, whose line leads from its share to a membership that differs by
/// `change`: total[column] += part + (change - sum of parts) * |part| / sum of |part|.
void divide_line(const double* row, const Parts& parts, double change, double* total);

/// Sums over the trees of each class.
struct Contributions {
  double* vote;   // [n_rows, n_classes] memberships
  double* total;  // [n_rows, n_classes, n_columns] what the columns add
  std::int64_t n_classes;
};

/// Parent of every node, both counted from the tree's root; -1 for a root.
inline std::vector<std::int32_t> find_parents(const ForestView& forest) {
  std::vector<std::int32_t> parent(forest.tree_start[forest.n_trees], -1);
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree)
    for (std::int64_t i = forest.tree_start[tree]; i < forest.tree_start[tree + 1]; ++i)
      if (forest.left[i] >= 0) {
        std::int32_t* child = parent.data() + forest.tree_start[tree] + forest.left[i];
        child[0] = child[1] = static_cast<std::int32_t>(i - forest.tree_start[tree]);
      }
  return parent;
}

/// A forest with what explanations read beside its answers.
struct Explained {
  const ForestView& forest;
  const double* share;         // [n_nodes] share of targets
  const std::int32_t* parent;  // [n_nodes] see find_parents
};

/// Explains the rows of a block, tree by tree.
class Explainer {
 public:
  Explainer(const Explained& model, const Block& block, Contributions sums)
      : model_(model), block_(block), sums_(sums), size_(padded(model.forest.n_features)) {}

  /// Add what one tree says of the rows, which must be in the order that Walker leaves.
  void add(std::int64_t tree, const std::vector<std::int32_t>& row, const Answers& answers,
           const StopFlag& stop) {
    const std::int32_t target = model_.forest.target[tree];
    for (std::size_t begin = 0, end; begin < row.size(); begin = end) {
      check_stop(stop);
      const std::int32_t leaf = answers.leaf[row[begin]];
      for (end = begin; end < row.size() && answers.leaf[row[end]] == leaf; ++end)
        sums_.vote[row[end] * sums_.n_classes + target] += answers.membership[row[end]];
      add_leaf(tree, leaf, {row.data() + begin, row.data() + end}, answers);
      add_path(tree, leaf, {row.data() + begin, row.data() + end});
    }
  }

 private:
  struct Span {  // rows of the block that share a leaf
    const std::int32_t *first, *last;
    const std::int32_t* begin() const { return first; }
    const std::int32_t* end() const { return last; }
  };

  Parts parts_of(std::int64_t node) {
    const ForestView& forest = model_.forest;
    return {forest.form(node), forest.center + forest.start[node], size_.data()};
  }

  double* total_of(std::int64_t tree, std::int32_t row) const {
    const ForestView& forest = model_.forest;
    return sums_.total + (row * sums_.n_classes + forest.target[tree]) * forest.n_features;
  }

  void add_leaf(std::int64_t tree, std::int32_t leaf, Span rows, const Answers& answers) {
    const std::int64_t node = model_.forest.tree_start[tree] + leaf;
    const Parts parts = parts_of(node);
    if (parts.form.n_terms == 0) return;
    for (const std::int32_t i : rows)
      divide_line(block_.row(i), parts, answers.membership[i] - model_.share[node],
                  total_of(tree, i));
  }

  void add_path(std::int64_t tree, std::int32_t leaf, Span rows) {
    const std::int64_t root = model_.forest.tree_start[tree];
    for (std::int32_t child = leaf, node; (node = model_.parent[root + child]) >= 0; child = node) {
      const Parts parts = parts_of(root + node);
      const double change = model_.share[root + child] - model_.share[root + node];
      for (const std::int32_t i : rows)
        divide_change(block_.row(i), parts, change, total_of(tree, i));
    }
  }

  const Explained& model_;
  const Block& block_;
  Contributions sums_;  // of the block's rows
  std::vector<double> size_;
};

/// Add what all trees say of some rows.
template <class T>
void explain_rows(const Explained& model, const T* values, RowRange range, Scaling scaling,
                  Contributions sums, const StopFlag& stop) {
  const ForestView& forest = model.forest;
  const auto [first, n] = range;
  const Block block = scale_rows(values + first * forest.n_features, n, forest.n_features, scaling);
  sums.vote += first * sums.n_classes;
  sums.total += first * sums.n_classes * forest.n_features;
  Walker walker(forest, block, Distance::none);
  Explainer explainer(model, block, sums);
  std::vector<std::int32_t> row(n);
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    check_stop(stop);
    for (std::int32_t i = 0; i < n; ++i) row[i] = i;
    walker.walk(tree, row, stop);
    explainer.add(tree, row, walker.answers, stop);
  }
}

}  // namespace lhtree
