// Rows on their way down the trees of a finished forest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "block.hpp"
#include "chains.hpp"
#include "projection_kernels.hpp"
#include "score_kernels.hpp"
#include "stop.hpp"
#include "tree.hpp"

namespace lhtree {

/// What one tree says of each row of a block.
struct Answers {
  std::vector<std::int32_t> leaf;
  std::vector<double> membership;
  std::vector<double> distance;  // to the nearest hyperplane of the path; 0 if there is none
};

/// What the line of a leaf adds to its share of targets for a row.
inline double find_line(const ForestView& forest, std::int64_t leaf, const double* row) {
  const FormView line = forest.form(leaf);
  if (line.n_terms == 0) return 0.0;
  return project_centered(row, line, forest.center + forest.start[leaf]);
}

/// Membership in the target class, from the share of a leaf and its line. Infinite parts of both
/// signs, far from all training rows, say nothing.
inline double add_line(double share, double line) {
  return std::isnan(line) ? share : std::clamp(share + line, 0.0, 1.0);
}

/// Which distances a walk finds.
enum class Distance { none, plain, normalized };

/// Walks blocks of rows down the trees; keeps its buffers between trees.
///
/// All rows that reach a node are projected together, so that its weights are
/// read once per block. Where most rows pass several dense splits one after the other, all of
/// these are guessed at once; see chains.hpp.
class Walker {
 public:
  Walker(const ForestView& forest, const Block& block, Distance distance)
      : forest_(forest),
        block_(block),
        distance_(distance),
        pointer_(block.n_rows),
        score_(block.n_rows),
        gap_(block.n_rows),
        spare_row_(block.n_rows) {
    answers.leaf.resize(block.n_rows);
    answers.membership.resize(block.n_rows);
    answers.distance.resize(block.n_rows);
    // Chains know normalised distances only.
    if (distance != Distance::plain && block.n_rows >= ChainFollower::least_rows &&
        may_have_chains(forest, block))
      chains_.emplace(forest, block);
  }

  Answers answers;

  /// Fill `answers` for the given rows of the block; afterwards they are grouped by leaf.
  void walk(std::int64_t tree, std::vector<std::int32_t>& row, const StopFlag& stop) {
    root_ = forest_.tree_start[tree];
    const auto n_rows = static_cast<std::int32_t>(row.size());
    if (n_rows == 0) return;
    const bool splits = forest_.left[root_] >= 0;
    constexpr double far = std::numeric_limits<double>::infinity();
    std::fill(answers.distance.begin(), answers.distance.end(), splits ? far : 0.0);
    if (chains_) chains_->begin(root_);
    stack_.assign(1, Span{0, 0, n_rows});
    while (!stack_.empty()) {
      check_stop(stop);
      const Span span = stack_.back();
      stack_.pop_back();
      if (forest_.left[root_ + span.node] < 0)
        arrive(span, row.data());
      else
        descend(span, row.data());
    }
    if (chains_ && distance_ != Distance::none) chains_->complete(answers.distance);
  }

 private:
  struct Span {
    std::int32_t node, begin, end;
  };
  static constexpr std::int32_t few = 512;  // so many rows of 100 columns stay in a fast cache

  void arrive(const Span& span, const std::int32_t* row) {
    const std::int64_t leaf = root_ + span.node;
    const double share = forest_.value[leaf];
    const bool is_constant = forest_.start[leaf] == forest_.start[leaf + 1];
    for (std::int32_t k = span.begin; k < span.end; ++k) {
      const std::int32_t i = row[k];
      answers.leaf[i] = span.node;
      answers.membership[i] =
          is_constant ? share : add_line(share, find_line(forest_, leaf, block_.row(i)));
    }
  }

  void descend(const Span& span, std::int32_t* row) {
    const std::int32_t n = span.end - span.begin;
    if (chains_ && n >= ChainFollower::least_rows && chains_->find(span.node))
      chains_->follow(row + span.begin, n,
                      [&](std::int32_t node, std::int32_t begin, std::int32_t end) {
                        push({node, span.begin + begin, span.begin + end});
                      });
    else
      split(span, row);
  }

  /// Move the rows of a node to its children.
  void split(const Span& span, std::int32_t* row) {
    const std::int64_t node = root_ + span.node;
    const std::int32_t n = span.end - span.begin, left = forest_.left[node];
    row += span.begin;
    for (std::int32_t k = 0; k < n; ++k) pointer_[k] = block_.row(row[k]);
    const Place place = n > few ? Place::scattered : Place::cached;
    project(pointer_.data(), n, forest_.form(node, block_.has_missing), place, score_.data());
    const double threshold = forest_.threshold[node];
    const double norm = distance_ == Distance::plain ? 1.0 : forest_.norm[node];
    find_gaps(score_.data(), n, threshold, norm, gap_.data());
    for (std::int32_t k = 0; k < n; ++k) shorten(answers.distance[row[k]], gap_[k]);
    const auto n_left =
        static_cast<std::int32_t>(divide_rows(row, n, score_.data(), threshold, spare_row_.data()));
    push({left + 1, span.begin + n_left, span.end});
    push({left, span.begin, span.begin + n_left});
  }

  void push(const Span& span) {
    if (span.begin == span.end) return;
    const FormView form = forest_.form(root_ + span.node);
    prefetch(form.weight, form.n_terms);
    stack_.push_back(span);
  }

  const ForestView& forest_;
  const Block& block_;
  Distance distance_;
  std::int64_t root_ = 0;
  std::vector<Span> stack_;
  std::vector<const double*> pointer_;
  std::vector<double> score_, gap_;
  std::vector<std::int32_t> spare_row_;  // rows on their way to another place
  std::optional<ChainFollower> chains_;  // where they may help
};

}  // namespace lhtree
