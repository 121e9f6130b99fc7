// The threshold of the one split that a node over all columns has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gini_cutter.hpp"
#include "limited_cut.hpp"
#include "node.hpp"
#include "random.hpp"
#include "score_kernels.hpp"
#include "threshold.hpp"

namespace lhtree {

/// Mark the columns that a tree may not use, if it draws some of them.
inline void fix_columns(std::uint64_t key, std::int64_t n_kept, std::int64_t n_columns,
                        std::vector<std::uint8_t>& is_fixed) {
  if (n_kept <= 0 || n_kept >= n_columns) return;
  std::vector<std::int32_t> column(n_columns);
  std::iota(column.begin(), column.end(), 0);
  shuffle_columns(key, column);
  for (std::int64_t k = n_kept; k < n_columns; ++k) is_fixed[column[k]] = 1;
}

/// Cuts the projections of a node; keeps its buffers between nodes.
class ScoreCutter {
 public:
  explicit ScoreCutter(const Rules& rules) : rules_(rules) {}

  /// Fill the threshold and the extremes of a split whose projections are there; false if
  /// they cannot be cut.
  bool cut(const NodeRows& rows, double min_weight, Split& split) {
    return choose_threshold(rows, split) && sides_are_heavy(rows, split, min_weight);
  }

 private:
  bool choose_threshold(const NodeRows& rows, Split& split) {
    const double* score = split.score.data();
    split.target = find_extremes(score, rows.target.size);
    split.rest = find_extremes(score + rows.target.size, rows.rest.size);
    const double lowest = std::min(split.target.min, split.rest.min);
    const double highest = std::max(split.target.max, split.rest.max);
    if (lowest == highest) return false;
    const double least = rules_.min_samples_leaf;
    if (rules_.cut == Cut::purity && least == 0.0) {
      split.threshold = choose_pure(
          count_outside(score, rows.target, split.rest.min, split.rest.max),
          count_outside(score + rows.target.size, rows.rest, split.target.min, split.target.max),
          split.target, split.rest, rules_.gamma);
      return true;
    }
    gather_weight(rows, row_weight_);
    const Scores scores = scores_of(rows, split);
    split.threshold = rules_.cut == Cut::purity
                          ? choose_pure(scores, split.target, split.rest, rules_.gamma, least)
                          : gini_cutter_.choose(scores, lowest, highest, infinity, least);
    return split.threshold.rule != Rule::leaf;
  }

  bool sides_are_heavy(const NodeRows& rows, const Split& split, double min_weight) {
    if (!(min_weight > 0.0)) return true;
    gather_weight(rows, row_weight_);
    const double left = sum_left(scores_of(rows, split), split.threshold.value).all;
    const double whole = sum_weight(rows.target) + sum_weight(rows.rest);
    return left >= min_weight && whole - left >= min_weight;
  }

  Scores scores_of(const NodeRows& rows, const Split& split) const {
    return {split.score.data(), row_weight_.empty() ? nullptr : row_weight_.data(),
            rows.target.size, rows.size()};
  }

  const Rules& rules_;
  GiniCutter gini_cutter_;
  PageVector<double> row_weight_;
};

}  // namespace lhtree
