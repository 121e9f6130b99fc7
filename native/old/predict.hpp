// Answers of a finished forest: leaves, memberships, distances, votes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "parallel.hpp"
#include "projection_kernels.hpp"
#include "tree.hpp"
#include "walker.hpp"

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

/// Copy rows into a block. Numbers beyond `limit` would overflow in a projection;
/// no training row has them, so they are moved to it.
template <class T>
Block scale_rows(const T* values, std::int64_t n_rows, std::int64_t n_columns, Scaling scaling) {
  constexpr double limit = 1e154;
  Block block{n_rows, n_columns, padded(n_columns), false, {}};
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

constexpr std::int64_t trees_in_step = 16;

/// The projections of one row on the splits that it has reached in some trees.
inline void project_row(const ForestView& forest, const double* row, bool has_missing,
                        const std::int64_t* node, std::int64_t n, double* score) {
  const double* weight[trees_in_step];
  const double* same[trees_in_step];
  bool is_dense = !has_missing;
  for (std::int64_t k = 0; k < n; ++k) {
    const FormView form = forest.form(node[k], has_missing);
    is_dense &= !form.feature;
    weight[k] = form.weight;
    same[k] = row;
  }
  if (is_dense)
    return project_each(same, {weight, forest.n_features, forest.weight + forest.n_all_terms}, n,
                        score);
  for (std::int64_t k = 0; k < n; ++k)
    project(&row, 1, forest.form(node[k], has_missing), Place::cached, score + k);
}

/// Move one row one node down in each active tree; returns how many go on.
inline std::int64_t step_down(const ForestView& forest, const double* row, bool has_missing,
                              bool normalizes, bool is_root, std::int64_t* active,
                              std::int64_t n_active, Answers& answers) {
  std::int64_t node[trees_in_step];
  double score[trees_in_step];
  for (std::int64_t k = 0; k < n_active; ++k) {
    node[k] = forest.tree_start[active[k]] + answers.leaf[active[k]];
    const FormView form = forest.form(node[k]);
    prefetch(form.weight, form.n_terms);
  }
  std::int64_t n_going = 0;
  for (std::int64_t k = 0; k < n_active; ++k) {
    const std::int64_t tree = active[k];
    if (forest.left[node[k]] < 0) {
      answers.membership[tree] =
          add_line(forest.value[node[k]], find_line(forest, node[k], row));
      if (is_root) answers.distance[tree] = 0.0;
      continue;
    }
    node[n_going] = node[k];
    active[n_going++] = tree;
  }
  project_row(forest, row, has_missing, node, n_going, score);
  for (std::int64_t k = 0; k < n_going; ++k) {
    const std::int64_t tree = active[k];
    const double threshold = forest.threshold[node[k]];
    double& distance = answers.distance[tree];
    if (is_root) distance = std::numeric_limits<double>::infinity();
    shorten(distance, find_gap(score[k], threshold, normalizes ? forest.norm[node[k]] : 1.0));
    answers.leaf[tree] = forest.left[node[k]] + !(score[k] < threshold);
    forest.prefetch_node(forest.tree_start[tree] + answers.leaf[tree]);
  }
  return n_going;
}

/// What every tree says of one row.
///
/// A single row waits for memory at every node, so a group of trees is walked in
/// step: while one tree's weights are on their way, the others are evaluated.
inline Answers walk_row(const ForestView& forest, const double* row, bool has_missing,
                        bool normalizes) {
  Answers answers;
  answers.leaf.assign(forest.n_trees, 0);
  answers.membership.resize(forest.n_trees);
  answers.distance.resize(forest.n_trees);
  for (std::int64_t first = 0; first < forest.n_trees; first += trees_in_step) {
    std::int64_t active[trees_in_step];
    std::int64_t n_active = std::min(trees_in_step, forest.n_trees - first);
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

/// Call visit(tree, voters, answers, normalized distances) for every tree, with the rows of the
/// block that it votes on; `first` is the number of the block's first row.
template <class Visit>
void visit_voters(const ForestView& forest, const Block& block, std::int64_t first,
                  const LeftOut& left_out, bool by_margin, const StopFlag& stop,
                  const Visit& visit) {
  Walker plain(forest, block, Distance::plain), normalized(forest, block, Distance::normalized);
  const Answers& answers = by_margin ? plain.answers : normalized.answers;
  std::vector<std::int32_t> voter(block.n_rows), row;
  std::iota(voter.begin(), voter.end(), 0);
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    check_stop(stop);
    if (left_out.word) {
      voter.clear();
      for (std::int32_t i = 0; i < block.n_rows; ++i)
        if (left_out.contains(tree, first + i)) voter.push_back(i);
    }
    row = voter;
    if (by_margin) plain.walk(tree, row, stop);
    normalized.walk(tree, row, stop);
    visit(tree, voter, answers, normalized.answers.distance);
  }
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
  visit_voters(forest, block, first, left_out, votes.by_margin, stop,
               [&](std::int64_t tree, const std::vector<std::int32_t>& voter,
                   const Answers& answers, const std::vector<double>& normalized) {
                 for (const std::int32_t i : voter)
                   add_vote(votes, range.first + i, forest.target[tree], answers.membership[i],
                            answers.distance[i], normalized[i]);
               });
}

/// Write the leaf of some rows in each tree.
template <class T>
void apply_rows(const ForestView& forest, const T* values, RowRange range, Scaling scaling,
                std::int64_t* leaf, const StopFlag& stop) {
  const auto [first, n] = range;
  const Block block = scale_rows(values + first * forest.n_features, n, forest.n_features, scaling);
  Walker walker(forest, block, Distance::none);
  std::vector<std::int32_t> row(n);
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    check_stop(stop);
    for (std::int32_t i = 0; i < n; ++i) row[i] = i;
    walker.walk(tree, row, stop);
    for (std::int64_t i = 0; i < n; ++i)
      leaf[(first + i) * forest.n_trees + tree] = walker.answers.leaf[i];
  }
}

}  // namespace lhtree
