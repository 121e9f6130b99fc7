// Sending rows down the trees of an ensemble: raw values for single columns, integers for
// hyperplanes.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/columns.hpp"
#include "base/instructions.hpp"
#include "old/parallel.hpp"

namespace lhtree::predict {

/// What is stored of an ensemble; see model/ensemble.hpp. A view.
struct EnsembleView {
  std::int64_t n_trees = 0;
  const std::int64_t* tree_start = nullptr;
  const std::int32_t* left = nullptr;
  const std::int32_t* column = nullptr;
  const std::uint8_t* missing_left = nullptr;
  const double* threshold = nullptr;
  const std::uint64_t* codes = nullptr;
  const std::int64_t* term_start = nullptr;
  const std::int32_t* feature = nullptr;
  const std::int16_t* coefficient = nullptr;
  const std::int32_t* fill = nullptr;
  const std::int64_t* cut = nullptr;

  /// Whether a category is in a set of codes.
  bool contains(std::uint64_t set, int code) const {
    return codes[4 * set + static_cast<std::uint64_t>(code >> 6)] >> (code & 63) & 1;
  }
};

/// What a node does with a row, in 16 bytes.
struct Step {
  enum Kind : std::uint32_t { leaf, number, category, hyperplane };

  std::int32_t left = -1;
  std::uint32_t tag = leaf;   // kind in two bits, missing_left in one, the column above them
  std::uint64_t payload = 0;  // threshold; number of the codes, the hyperplane or the leaf

  Kind kind() const { return static_cast<Kind>(tag & 3); }
  std::uint32_t missing_left() const { return tag >> 2 & 1; }
  std::int64_t column() const { return tag >> 3; }
};

/// What walking needs beside the ensemble, made once for a model.
struct Prepared {
  std::vector<Step> steps;                  // of all nodes
  std::vector<std::int32_t> used;           // columns of hyperplanes, ascending
  std::vector<std::int32_t> term_position;  // of each term among these
  std::vector<std::int32_t> singles;        // columns of other splits, ascending
};

inline Prepared prepare(const EnsembleView& trees, const std::vector<base::Column>& columns) {
  Prepared result;
  result.steps.resize(trees.tree_start[trees.n_trees]);
  std::int64_t n_numbers = 0, n_categories = 0, n_planes = 0, n_leaves = 0;
  std::vector<std::uint8_t> is_single(columns.size(), 0);
  for (std::size_t k = 0; k < result.steps.size(); ++k) {
    Step& step = result.steps[k];
    step.left = trees.left[k];
    if (step.left < 0) {
      step.payload = static_cast<std::uint64_t>(n_leaves++);
      continue;
    }
    const auto column = static_cast<std::uint32_t>(trees.column[k]);
    if (trees.column[k] >= 0) is_single[column] = 1;
    if (trees.column[k] < 0) {
      step.tag = Step::hyperplane;
      step.payload = static_cast<std::uint64_t>(n_planes++);
    } else if (columns[column].is_category()) {
      step.tag = Step::category | column << 3;
      step.payload = static_cast<std::uint64_t>(n_categories++);
    } else {
      step.tag = Step::number | std::uint32_t{trees.missing_left[k]} << 2 | column << 3;
      step.payload = std::bit_cast<std::uint64_t>(trees.threshold[n_numbers++]);
    }
  }
  const std::int64_t n_terms = trees.term_start[n_planes];
  std::vector<std::int32_t> position(columns.size(), -1);
  for (std::int64_t k = 0; k < n_terms; ++k) position[trees.feature[k]] = 0;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    if (position[j] < 0) continue;
    position[j] = static_cast<std::int32_t>(result.used.size());
    result.used.push_back(static_cast<std::int32_t>(j));
  }
  for (std::int64_t k = 0; k < n_terms; ++k)
    result.term_position.push_back(position[trees.feature[k]]);
  for (std::size_t j = 0; j < columns.size(); ++j)
    if (is_single[j]) result.singles.push_back(static_cast<std::int32_t>(j));
  return result;
}

/// A view of a prepared ensemble.
struct PreparedView {
  EnsembleView trees;
  const Step* steps = nullptr;
  const std::int32_t* used = nullptr;
  std::int64_t n_used = 0;
  const std::int32_t* term_position = nullptr;
  const std::int32_t* singles = nullptr;
  std::int64_t n_singles = 0;
};

/// Walks rows one by one.
template <class T>
class Walker {
 public:
  Walker(const PreparedView& view, const std::vector<base::Column>& columns)
      : view_(view), columns_(columns) {
    for (std::int64_t k = 0; k < view.n_used; ++k)
      placers_.emplace_back(columns[view.used[k]].grid);
  }

  /// Call visit(row, tree, node, leaf) for the leaf of each row from `begin` to `end` in each tree:
  /// its number among the nodes of the tree, and among all leaves.
  template <class Visit>
  void run(const T* X, std::int64_t begin, std::int64_t end, const Visit& visit) const {
    run(X, begin, end, visit, [](auto...) {});
  }

  /// Beside that, call pass(row, tree, node, child, z) for each split on the way: the numbers of
  /// nodes among all, and the row on the grids of the columns of hyperplanes.
  template <class Visit, class Pass>
  void run(const T* X, std::int64_t begin, std::int64_t end, const Visit& visit,
           const Pass& pass) const {
    const auto d = static_cast<std::int64_t>(columns_.size());
    std::vector<std::int32_t> z(view_.n_used);
    for (std::int64_t i = begin; i < end; ++i) {
      const T* x = X + i * d;
      for (std::int64_t k = 0; k < view_.n_used; ++k)
        z[k] = placers_[k].place(static_cast<double>(x[view_.used[k]]));
      for (std::int64_t tree = 0; tree < view_.trees.n_trees; ++tree) {
        const std::int64_t first = view_.trees.tree_start[tree];
        const Step* root = view_.steps + first;
        const std::int64_t node =
            walk(root, x, z.data(), [&](std::int64_t split, std::int64_t child) {
              pass(i, tree, first + split, first + child, z.data());
            });
        visit(i, tree, node, static_cast<std::int64_t>(root[node].payload));
      }
    }
  }

 private:
  template <class Pass>
  std::int64_t walk(const Step* root, const T* x, const std::int32_t* z, const Pass& pass) const {
    std::int64_t node = 0;
    for (;;) {
      const std::int64_t split = node;
      const Step step = root[split];
      switch (step.kind()) {
        case Step::leaf:
          return node;
        case Step::number: {
          const auto value = static_cast<double>(x[step.column()]);
          const bool is_left = std::isnan(value) ? step.missing_left() != 0
                                                 : value < std::bit_cast<double>(step.payload);
          node = step.left + !is_left;
          break;
        }
        case Step::category: {
          const auto value = static_cast<double>(x[step.column()]);
          const int code = columns_[step.column()].look_up_code(value);
          node = step.left + !view_.trees.contains(step.payload, code);
          break;
        }
        case Step::hyperplane:
          node = step.left + (project(step.payload, z) >= view_.trees.cut[step.payload]);
          break;
      }
      pass(split, node);
    }
  }

  std::int64_t project(std::uint64_t plane, const std::int32_t* z) const {
    const EnsembleView& trees = view_.trees;
    std::int64_t sum = 0;
    for (std::int64_t k = trees.term_start[plane]; k < trees.term_start[plane + 1]; ++k) {
      const std::int32_t value = z[view_.term_position[k]];
      sum += std::int64_t{trees.coefficient[k]} * (value == base::gap ? trees.fill[k] : value);
    }
    return sum;
  }

  PreparedView view_;
  const std::vector<base::Column>& columns_;
  std::vector<base::Placer> placers_;
};

}  // namespace lhtree::predict
