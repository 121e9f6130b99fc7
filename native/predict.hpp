// Answers of a finished forest: leaves, memberships, distances, votes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "tree.hpp"

namespace lhtree {

/// How a column becomes the number that trees compare: (x - mean) / deviation.
/// Null pointers leave it as it is.
struct Scaling {
  const double* mean;
  const double* deviation;
};

inline constexpr std::int64_t rows_per_task = 512;

/// Rows on their way through a forest: standardised, in whole lanes.
struct Block {
  std::int64_t n_rows;
  std::int64_t width;
  std::vector<double> value;  // [n_rows, width]
  const double* row(std::int64_t i) const { return value.data() + i * width; }
};

/// Copy rows into a block. Numbers beyond `limit` would overflow in a projection;
/// no training row has them, so they are moved to it.
template <class T>
Block scale_rows(const T* values, std::int64_t n_rows, std::int64_t n_columns, Scaling scaling) {
  constexpr double limit = 1e154;
  Block block{n_rows, padded(n_columns), {}};
  block.value.assign(static_cast<std::size_t>(n_rows * block.width), 0.0);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const T* from = values + i * n_columns;
    double* to = block.value.data() + i * block.width;
    for (std::int64_t j = 0; j < n_columns; ++j) {
      double value = from[j];
      if (scaling.mean) value = (value - scaling.mean[j]) / scaling.deviation[j];
      to[j] = std::clamp(value, -limit, limit);
    }
  }
  return block;
}

/// What one tree says of each row of a block.
struct Answers {
  std::vector<std::int32_t> leaf;
  std::vector<double> membership;
  std::vector<double> distance;  // to the nearest hyperplane of the path; 0 if there is none
};

/// Membership of a row in the target class of its leaf.
inline double find_membership(const ForestView& forest, std::int64_t leaf, const double* row) {
  const FormView line = forest.form(leaf);
  const double share = forest.threshold[leaf];
  if (line.n_terms == 0) return share;
  const double value = share + project_centered(row, line, forest.center + forest.start[leaf]);
  // Infinite parts of both signs, far from all training rows, say nothing.
  return std::isnan(value) ? share : std::clamp(value, 0.0, 1.0);
}

/// Walks blocks of rows down the trees; keeps its buffers between trees.
///
/// All rows that reach a node are projected together, so that its weights are
/// read once per block.
class Walker {
 public:
  Walker(const ForestView& forest, const Block& block) : forest_(forest), block_(block) {
    answers.leaf.resize(block.n_rows);
    answers.membership.resize(block.n_rows);
    answers.distance.resize(block.n_rows);
    pointer_.resize(block.n_rows);
    score_.resize(block.n_rows);
    right_.resize(block.n_rows);
  }

  Answers answers;

  /// Fill `answers` for the rows given (ascending positions in the block).
  void walk(std::int64_t tree, std::vector<std::int32_t>& row, bool normalizes) {
    const std::int64_t root = forest_.tree_start[tree];
    for (const std::int32_t i : row)
      answers.distance[i] = std::numeric_limits<double>::infinity();
    stack_.clear();
    if (!row.empty()) stack_.push_back({0, 0, static_cast<std::int32_t>(row.size())});
    while (!stack_.empty()) {
      const Span span = stack_.back();
      stack_.pop_back();
      if (forest_.left[root + span.node] < 0)
        arrive(root, span, row.data());
      else
        descend(root, span, row.data(), normalizes);
    }
  }

 private:
  struct Span {
    std::int32_t node, begin, end;
  };

  void arrive(std::int64_t root, const Span& span, const std::int32_t* row) {
    for (std::int32_t k = span.begin; k < span.end; ++k) {
      const std::int32_t i = row[k];
      answers.leaf[i] = span.node;
      answers.membership[i] = find_membership(forest_, root + span.node, block_.row(i));
      if (span.node == 0) answers.distance[i] = 0.0;
    }
  }

  void descend(std::int64_t root, const Span& span, std::int32_t* row, bool normalizes) {
    const std::int64_t node = root + span.node;
    const std::int32_t n = span.end - span.begin, left = forest_.left[node];
    for (std::int32_t k = 0; k < n; ++k) pointer_[k] = block_.row(row[span.begin + k]);
    project(pointer_.data(), n, forest_.form(node), score_.data());
    const double threshold = forest_.threshold[node];
    const double norm = normalizes ? forest_.norm[node] : 1.0;
    std::int32_t n_left = span.begin, n_right = 0;
    for (std::int32_t k = 0; k < n; ++k) {
      const std::int32_t i = row[span.begin + k];
      const double distance = std::abs(score_[k] - threshold) / norm;
      answers.distance[i] = std::min(answers.distance[i], distance);
      if (score_[k] < threshold)
        row[n_left++] = i;
      else
        right_[n_right++] = i;
    }
    std::copy_n(right_.begin(), n_right, row + n_left);
    if (n_right > 0) stack_.push_back({left + 1, n_left, span.end});
    if (n_left > span.begin) stack_.push_back({left, span.begin, n_left});
  }

  const ForestView& forest_;
  const Block& block_;
  std::vector<const double*> pointer_;
  std::vector<double> score_;
  std::vector<std::int32_t> right_;
  std::vector<Span> stack_;
};

/// Sums over the trees of each class; see SPEC "Vote".
struct Votes {
  double* vote;              // [n_rows, n_classes] membership, or membership times distance
  double* signed_distance;   // [n_rows, n_classes] (2 membership - 1) * distance
  double* complement;        // [n_rows] sum of (1 - membership) * distance; margin voting only
  std::int64_t n_classes;
  bool by_margin;
};

inline void add_votes(const Answers& answers, const Answers& normalized,
                      const std::vector<std::int32_t>& row, std::int64_t first_row,
                      std::int32_t target, const Votes& votes) {
  for (const std::int32_t i : row) {
    const std::int64_t cell = (first_row + i) * votes.n_classes + target;
    const double membership = answers.membership[i];
    votes.vote[cell] += votes.by_margin ? membership * answers.distance[i] : membership;
    votes.signed_distance[cell] += (2.0 * membership - 1.0) * normalized.distance[i];
    if (votes.by_margin) votes.complement[first_row + i] += (1.0 - membership) * answers.distance[i];
  }
}

/// Rows left out of each member, as bits: row i of member b is bit i of
/// word[b * n_words + i / 64]. Empty: all rows take part.
struct LeftOut {
  const std::uint64_t* word = nullptr;
  std::int64_t n_words = 0;
  std::int64_t n_trees_per_member = 1;

  bool contains(std::int64_t tree, std::int64_t row) const {
    const std::int64_t member = tree / n_trees_per_member;
    return word[member * n_words + row / 64] >> (row % 64) & 1;
  }
};

/// Add the votes of all trees for the rows of one task.
template <class T>
void vote_rows(const ForestView& forest, const T* values, std::int64_t n_rows, Scaling scaling,
               const LeftOut& left_out, const Votes& votes, std::int64_t task,
               const StopFlag& stop) {
  const std::int64_t first = task * rows_per_task;
  const std::int64_t n = std::min(rows_per_task, n_rows - first);
  const Block block = scale_rows(values + first * forest.n_features, n, forest.n_features, scaling);
  Walker walker(forest, block), normalized(forest, block);
  std::vector<std::int32_t> row;
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    check_stop(stop);
    row.clear();
    for (std::int32_t i = 0; i < n; ++i)
      if (!left_out.word || left_out.contains(tree, first + i)) row.push_back(i);
    walker.walk(tree, row, !votes.by_margin);
    if (votes.by_margin) normalized.walk(tree, row, true);
    add_votes(walker.answers, votes.by_margin ? normalized.answers : walker.answers, row, first,
              forest.target[tree], votes);
  }
}

/// Write the leaf of each row in each tree.
template <class T>
void apply_rows(const ForestView& forest, const T* values, std::int64_t n_rows, Scaling scaling,
                std::int64_t* leaf, std::int64_t task, const StopFlag& stop) {
  const std::int64_t first = task * rows_per_task;
  const std::int64_t n = std::min(rows_per_task, n_rows - first);
  const Block block = scale_rows(values + first * forest.n_features, n, forest.n_features, scaling);
  Walker walker(forest, block);
  std::vector<std::int32_t> row(n);
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    check_stop(stop);
    for (std::int32_t i = 0; i < n; ++i) row[i] = i;
    walker.walk(tree, row, true);
    for (std::int64_t i = 0; i < n; ++i)
      leaf[(first + i) * forest.n_trees + tree] = walker.answers.leaf[i];
  }
}

}  // namespace lhtree
