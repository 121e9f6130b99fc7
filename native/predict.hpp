// Answers of a finished forest: leaves, memberships, distances, votes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "projection_kernels.hpp"
#include "score_kernels.hpp"
#include "tree.hpp"

namespace lhtree {

/// How a column becomes the number that trees compare: (x - mean) / deviation.
/// Null pointers leave it as it is.
struct Scaling {
  const double* mean;
  const double* deviation;
};

/// Rows that walk down together: the more, the less often a node is read, as long as they
/// fit into a cache; and few enough that all threads get some.
inline std::int64_t count_rows_per_task(std::int64_t n_rows, std::int64_t n_columns,
                                        std::int64_t n_threads) {
  constexpr std::int64_t bytes = 1 << 23, least = 64, most = 1 << 14;
  const std::int64_t fitting = bytes / (padded(n_columns) * 8);
  const std::int64_t n_parts = n_threads > 1 ? 2 * n_threads : 1;
  const std::int64_t fair = (n_rows + n_parts - 1) / n_parts;
  return std::clamp(std::min(fitting, fair), least, most);
}

/// Rows [first, first + size) of the caller's table.
struct RowRange {
  std::int64_t first;
  std::int64_t size;
};

/// Rows on their way through a forest: standardised, in whole lanes.
struct Block {
  std::int64_t n_rows;
  std::int64_t width;
  bool has_missing;           // whether a value is NaN
  std::vector<double> value;  // [n_rows, width]
  const double* row(std::int64_t i) const { return value.data() + i * width; }
};

/// Copy rows into a block. Numbers beyond `limit` would overflow in a projection;
/// no training row has them, so they are moved to it.
template <class T>
Block scale_rows(const T* values, std::int64_t n_rows, std::int64_t n_columns, Scaling scaling) {
  constexpr double limit = 1e154;
  Block block{n_rows, padded(n_columns), false, {}};
  block.value.assign(static_cast<std::size_t>(n_rows * block.width), 0.0);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const T* from = values + i * n_columns;
    double* to = block.value.data() + i * block.width;
    for (std::int64_t j = 0; j < n_columns; ++j) {
      double value = from[j];
      if (scaling.mean) value = (value - scaling.mean[j]) / scaling.deviation[j];
      to[j] = std::clamp(value, -limit, limit);
      block.has_missing |= value != value;
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

/// Move one row one node down in each active tree; returns how many go on.
inline std::int64_t step_down(const ForestView& forest, const double* row, bool has_missing,
                              bool normalizes, bool is_root, std::int64_t* active,
                              std::int64_t n_active, Answers& answers) {
  for (std::int64_t k = 0; k < n_active; ++k) {
    const std::int64_t tree = active[k];
    const FormView form = forest.form(forest.tree_start[tree] + answers.leaf[tree]);
    prefetch(form.weight, form.n_terms);
  }
  std::int64_t n_going = 0;
  for (std::int64_t k = 0; k < n_active; ++k) {
    const std::int64_t tree = active[k], root = forest.tree_start[tree];
    const std::int64_t node = root + answers.leaf[tree];
    const std::int32_t left = forest.left[node];
    if (left < 0) {
      answers.membership[tree] = find_membership(forest, node, row);
      if (is_root) answers.distance[tree] = 0.0;
      continue;
    }
    double score;
    project(&row, 1, forest.form(node, has_missing), Place::cached, &score);
    const double threshold = forest.threshold[node];
    double& distance = answers.distance[tree];
    if (is_root) distance = std::numeric_limits<double>::infinity();
    shorten(&distance, &score, 1, threshold, normalizes ? forest.norm[node] : 1.0);
    answers.leaf[tree] = left + !(score < threshold);
    forest.prefetch_node(root + answers.leaf[tree]);
    active[n_going++] = tree;
  }
  return n_going;
}

/// Walks blocks of rows down the trees; keeps its buffers between trees.
///
/// All rows that reach a node are projected together, so that its weights are
/// read once per block.
class Walker {
 public:
  Walker(const ForestView& forest, const Block& block)
      : forest_(forest),
        block_(block),
        nearest_(block.n_rows),
        pointer_(block.n_rows),
        score_(block.n_rows),
        spare_row_(block.n_rows),
        spare_nearest_(block.n_rows) {
    answers.leaf.resize(block.n_rows);
    answers.membership.resize(block.n_rows);
    answers.distance.resize(block.n_rows);
  }

  Answers answers;

  /// Fill `answers` for the given rows of the block, whose order is lost.
  void walk(std::int64_t tree, std::vector<std::int32_t>& row, bool normalizes,
            const StopFlag& stop) {
    const std::int64_t root = forest_.tree_start[tree];
    const auto n_rows = static_cast<std::int32_t>(row.size());
    if (n_rows == 0) return;
    const bool splits = forest_.left[root] >= 0;
    std::fill_n(nearest_.begin(), n_rows, splits ? std::numeric_limits<double>::infinity() : 0.0);
    stack_.assign(1, Span{0, 0, n_rows, 0});
    while (!stack_.empty()) {
      check_stop(stop);
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
    int n_known;  // its scores and those of this many nodes less one below it are known
  };
  static constexpr std::int32_t few = 512;  // so many rows of 100 columns stay in a fast cache

  void arrive(std::int64_t root, const Span& span, const std::int32_t* row) {
    for (std::int32_t k = span.begin; k < span.end; ++k) {
      const std::int32_t i = row[k];
      answers.leaf[i] = span.node;
      answers.membership[i] = find_membership(forest_, root + span.node, block_.row(i));
      answers.distance[i] = nearest_[k];
    }
  }

  void descend(std::int64_t root, const Span& span, std::int32_t* row, bool normalizes) {
    const std::int64_t node = root + span.node;
    const std::int32_t n = span.end - span.begin, left = forest_.left[node];
    row += span.begin;
    double* nearest = nearest_.data() + span.begin;
    int n_known = span.n_known;
    if (n_known == 0) n_known = look_ahead(root, node, row, n);
    if (n_known > 0) {
      const double* known = known_[most_forms - n_known].data();
      for (std::int32_t k = 0; k < n; ++k) score_[k] = known[row[k]];
    } else {
      project_rows(node, row, n);
    }
    const double threshold = forest_.threshold[node];
    shorten(nearest, score_.data(), n, threshold, normalizes ? forest_.norm[node] : 1.0);
    const auto n_left = static_cast<std::int32_t>(divide_rows(
        {row, nearest}, n, score_.data(), threshold, {spare_row_.data(), spare_nearest_.data()}));
    const std::int32_t middle = span.begin + n_left;
    Span small{left + 1, middle, span.end, 0}, large{left, span.begin, middle, 0};
    if (forest_.larger_child(root, node) != root + left) std::swap(small, large);
    large.n_known = std::max(n_known - 1, 0);
    if (small.begin < small.end) push(root, small);
    if (large.begin < large.end) push(root, large);  // comes next: what is known is of it
  }

  void project_rows(std::int64_t node, const std::int32_t* row, std::int32_t n) {
    for (std::int32_t k = 0; k < n; ++k) pointer_[k] = block_.row(row[k]);
    const Place place = n > few ? Place::scattered : Place::cached;
    project(pointer_.data(), n, forest_.form(node, block_.has_missing), place, score_.data());
  }

  /// Trees that cut off small pieces send most rows the same way for a while. Those rows are
  /// far away if they are many, so the nodes on this way are asked at once. Returns for how
  /// many nodes scores are known now.
  int look_ahead(std::int64_t root, std::int64_t node, const std::int32_t* row, std::int32_t n) {
    constexpr std::int32_t least_rows = 128;
    if (n < least_rows || block_.has_missing) return 0;
    FormView form[most_forms];
    int n_forms = 0;
    const double least = 0.5 * static_cast<double>(forest_.n_samples[node]);
    while (n_forms < most_forms && forest_.is_dense_split(node) &&
           static_cast<double>(forest_.n_samples[node]) >= least) {
      form[n_forms++] = forest_.form(node);
      node = forest_.larger_child(root, node);
    }
    if (n_forms < 2) return 0;
    double* score[most_forms];
    for (int f = 0; f < n_forms; ++f) {
      known_[most_forms - n_forms + f].resize(block_.n_rows);
      score[f] = known_[most_forms - n_forms + f].data();
    }
    for (std::int32_t k = 0; k < n; ++k) pointer_[k] = block_.row(row[k]);
    project_forms(pointer_.data(), n, form, n_forms, row, score);
    return n_forms;
  }

  void push(std::int64_t root, const Span& span) {
    const FormView form = forest_.form(root + span.node);
    prefetch(form.weight, form.n_terms);
    stack_.push_back(span);
  }

  const ForestView& forest_;
  const Block& block_;
  std::vector<double> nearest_;  // distance so far of each row, in the order of the rows
  std::vector<const double*> pointer_;
  std::vector<double> score_;
  std::vector<double> known_[most_forms];  // by row: the last ones of nodes that come next
  std::vector<std::int32_t> spare_row_;    // rows on their way to the right child
  std::vector<double> spare_nearest_;
  std::vector<Span> stack_;
};

/// What every tree says of one row.
///
/// A single row waits for memory at every node, so a group of trees is walked in
/// step: while one tree's weights are on their way, the others are evaluated.
inline Answers walk_row(const ForestView& forest, const double* row, bool has_missing,
                        bool normalizes) {
  constexpr std::int64_t group = 16;
  Answers answers;
  answers.leaf.assign(forest.n_trees, 0);
  answers.membership.resize(forest.n_trees);
  answers.distance.resize(forest.n_trees);
  for (std::int64_t first = 0; first < forest.n_trees; first += group) {
    std::int64_t active[group];
    std::int64_t n_active = std::min(group, forest.n_trees - first);
    for (std::int64_t k = 0; k < n_active; ++k) active[k] = first + k;
    for (bool is_root = true; n_active > 0; is_root = false)
      n_active =
          step_down(forest, row, has_missing, normalizes, is_root, active, n_active, answers);
  }
  return answers;
}

/// Sums over the trees of each class.
struct Votes {
  double* vote;             // [n_rows, n_classes] membership, or membership times distance
  double* signed_distance;  // [n_rows, n_classes] (2 membership - 1) * distance
  double* complement;       // [n_rows] sum of (1 - membership) * distance; margin voting only
  std::int64_t n_classes;
  bool by_margin;
};

/// Add what one tree says of one row: its membership and its distances from the
/// nearest hyperplane, plain and normalised.
inline void add_vote(const Votes& votes, std::int64_t row, std::int32_t target, double membership,
                     double distance, double normalized_distance) {
  const std::int64_t cell = row * votes.n_classes + target;
  votes.vote[cell] += votes.by_margin ? membership * distance : membership;
  votes.signed_distance[cell] += (2.0 * membership - 1.0) * normalized_distance;
  if (votes.by_margin) votes.complement[row] += (1.0 - membership) * distance;
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

/// Add the votes of all trees for one row.
inline void vote_row(const ForestView& forest, const double* values, bool has_missing,
                     std::int64_t row, const Votes& votes) {
  const Answers normalized = walk_row(forest, values, has_missing, true);
  const Answers plain = votes.by_margin ? walk_row(forest, values, has_missing, false) : Answers{};
  const Answers& answers = votes.by_margin ? plain : normalized;
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree)
    add_vote(votes, row, forest.target[tree], answers.membership[tree], answers.distance[tree],
             normalized.distance[tree]);
}

/// Add the votes of all trees for some rows.
template <class T>
void vote_rows(const ForestView& forest, const T* values, RowRange range, Scaling scaling,
               const LeftOut& left_out, const Votes& votes, const StopFlag& stop) {
  const auto [first, n] = range;
  const Block block = scale_rows(values + first * forest.n_features, n, forest.n_features, scaling);
  constexpr std::int64_t few = 4;  // for so few rows, trees in step are faster than rows in step
  if (n <= few && !left_out.word) {
    for (std::int64_t i = 0; i < n; ++i)
      vote_row(forest, block.row(i), block.has_missing, first + i, votes);
    return;
  }
  Walker plain(forest, block), normalized(forest, block);
  const Answers& answers = votes.by_margin ? plain.answers : normalized.answers;
  std::vector<std::int32_t> row;
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    check_stop(stop);
    row.clear();
    for (std::int32_t i = 0; i < n; ++i)
      if (!left_out.word || left_out.contains(tree, first + i)) row.push_back(i);
    if (votes.by_margin) plain.walk(tree, row, false, stop);
    normalized.walk(tree, row, true, stop);
    for (const std::int32_t i : row)
      add_vote(votes, first + i, forest.target[tree], answers.membership[i], answers.distance[i],
               normalized.answers.distance[i]);
  }
}

/// Write the leaf of some rows in each tree.
template <class T>
void apply_rows(const ForestView& forest, const T* values, RowRange range, Scaling scaling,
                std::int64_t* leaf, const StopFlag& stop) {
  const auto [first, n] = range;
  const Block block = scale_rows(values + first * forest.n_features, n, forest.n_features, scaling);
  Walker walker(forest, block);
  std::vector<std::int32_t> row(n);
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    check_stop(stop);
    for (std::int32_t i = 0; i < n; ++i) row[i] = i;
    walker.walk(tree, row, true, stop);
    for (std::int64_t i = 0; i < n; ++i)
      leaf[(first + i) * forest.n_trees + tree] = walker.answers.leaf[i];
  }
}

}  // namespace lhtree
