// The constant that cuts the projections of a node.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels.hpp"
#include "rules.hpp"

namespace lhtree {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double same_impurity = 1e-12;  // impurities this close are equal

/// Projections of a node's rows, targets first, and the weight of each if they differ.
struct Scores {
  const double* score;
  const double* weight;  // null: every row counts once
  std::int64_t n_targets;
  std::int64_t n_rows;

  double weight_of(std::int64_t i) const { return weight ? weight[i] : 1.0; }
};

/// Weighted targets and rows on the left of a cut.
struct LeftSide {
  double target = 0.0;
  double all = 0.0;
};

/// Gini impurity of a cut, up to the factor two.
inline double find_impurity(LeftSide left, LeftSide whole) {
  const double right = whole.all - left.all, right_target = whole.target - left.target;
  return (left.target * (left.all - left.target) / left.all +
          right_target * (right - right_target) / right) /
         whole.all;
}

inline LeftSide sum_left(const Scores& scores, double threshold) {
  LeftSide left;
  for (std::int64_t i = 0; i < scores.n_rows; ++i) {
    if (!(scores.score[i] < threshold)) continue;
    left.all += scores.weight_of(i);
    if (i < scores.n_targets) left.target += scores.weight_of(i);
  }
  return left;
}

/// Cut off the largest pure piece, or go through the middle.
inline Threshold choose_pure(const Outside& targets, const Outside& others,
                             const Extremes& target, const Extremes& rest, double gamma) {
  const double n1 = targets.below, n2 = targets.above, n3 = others.below, n4 = others.above;
  const double largest = std::max(std::max(n1, n2), std::max(n3, n4));
  if (largest > 0.0 && largest >= gamma) {
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

/// Half-way between neighbouring projections a < b; b where rounding meets a.
inline double cut_between(double a, double b) {
  const double middle = a + (b - a) / 2;
  return middle > a ? middle : b;
}

/// Finds the cut of least Gini impurity; keeps its buffers between nodes.
///
/// Projections are counted in bins. Impurity is concave in the weights on the left,
/// so within a bin it is nowhere below its least value at the corners that the
/// bin's rows could reach: only bins that may hold the best cut are sorted.
class GiniCutter {
 public:
  /// The projections must not all be equal.
  Threshold choose(const Scores& scores, double lowest, double highest) {
    scores_ = scores;
    count(lowest, highest);
    double least = infinity;
    LeftSide left;
    for (std::int64_t b = 0; b < n_bins_; ++b) {
      bound_[b] = find_bound(left, bin_[b]);
      left = {left.target + bin_[b].target, left.all + bin_[b].all};
      if (size_[b] > 0 && left_of_end(b)) least = std::min(least, find_impurity(left, whole_));
    }
    least = std::min(least, sort_bins(least));
    return find_lowest(least + same_impurity);
  }

 private:
  struct Row {
    double score, weight;
    bool is_target;
  };
  static constexpr std::int64_t most_bins = 256;

  std::int64_t bin_of(double score) const {
    return std::min(n_bins_ - 1, static_cast<std::int64_t>((score - lowest_) * scale_));
  }

  bool left_of_end(std::int64_t b) const { return b < last_bin_; }

  void count(double lowest, double highest) {
    lowest_ = lowest;
    n_bins_ = std::clamp<std::int64_t>(scores_.n_rows / 4, 1, most_bins);
    scale_ = static_cast<double>(n_bins_) / (highest - lowest);
    if (!std::isfinite(scale_) || !(scale_ > 0.0)) n_bins_ = 1, scale_ = 0.0;
    std::fill_n(bin_, n_bins_, LeftSide{});
    std::fill_n(size_, n_bins_, 0);
    for (std::int64_t i = 0; i < scores_.n_rows; ++i) {
      const std::int64_t b = bin_of(scores_.score[i]);
      const double weight = scores_.weight_of(i);
      bin_[b].all += weight;
      if (i < scores_.n_targets) bin_[b].target += weight;
      ++size_[b];
    }
    whole_ = LeftSide{};
    for (std::int64_t b = 0; b < n_bins_; ++b) {
      whole_ = {whole_.target + bin_[b].target, whole_.all + bin_[b].all};
      if (size_[b] > 0) last_bin_ = b;
    }
  }

  /// No cut inside the bin has less impurity.
  double find_bound(LeftSide before, LeftSide bin) const {
    const LeftSide corners[4] = {
        before,
        {before.target + bin.target, before.all + bin.target},
        {before.target, before.all + (bin.all - bin.target)},
        {before.target + bin.target, before.all + bin.all}};
    double bound = infinity;
    for (const LeftSide& corner : corners) {
      const bool is_empty = !(corner.all > 0.0), is_whole = !(corner.all < whole_.all);
      // An empty side has impurity 0: the other side's is the whole's.
      const double whole = whole_.target * (whole_.all - whole_.target) / whole_.all / whole_.all;
      bound = std::min(bound, is_empty || is_whole ? whole : find_impurity(corner, whole_));
    }
    return bound;
  }

  /// Sort the rows of the bins that may hold a cut as good as `least`; returns the
  /// least impurity found inside them.
  double sort_bins(double least) {
    row_.clear();
    const double limit = least + same_impurity;
    for (std::int64_t b = 0; b < n_bins_; ++b) is_sorted_[b] = size_[b] > 1 && bound_[b] <= limit;
    for (std::int64_t i = 0; i < scores_.n_rows; ++i)
      if (is_sorted_[bin_of(scores_.score[i])])
        row_.push_back({scores_.score[i], scores_.weight_of(i), i < scores_.n_targets});
    std::sort(row_.begin(), row_.end(), [](const Row& a, const Row& b) { return a.score < b.score; });
    double best = infinity;
    walk_cuts([&](double impurity, std::int64_t, std::int64_t) {
      best = std::min(best, impurity);
      return false;
    });
    return best;
  }

  /// Call visit(impurity, bin, row) for every cut in ascending order until it returns
  /// true: cuts inside a sorted bin lie before `row`, those behind a bin have row -1.
  template <class Visit>
  void walk_cuts(const Visit& visit) const {
    LeftSide left;
    std::size_t next = 0;
    for (std::int64_t b = 0; b <= last_bin_; ++b) {
      LeftSide inner = left;
      const std::size_t end = next + (is_sorted_[b] ? size_[b] : 0);
      for (; next < end; ++next) {
        const bool starts = next + size_[b] == end;
        if (!starts && row_[next - 1].score < row_[next].score &&
            visit(find_impurity(inner, whole_), b, static_cast<std::int64_t>(next)))
          return;
        inner.all += row_[next].weight;
        if (row_[next].is_target) inner.target += row_[next].weight;
      }
      left = {left.target + bin_[b].target, left.all + bin_[b].all};
      if (size_[b] > 0 && left_of_end(b) && visit(find_impurity(left, whole_), b, -1)) return;
    }
  }

  Threshold find_lowest(double limit) const {
    Threshold threshold;
    walk_cuts([&](double impurity, std::int64_t bin, std::int64_t row) {
      if (impurity > limit) return false;
      const double value = row < 0 ? cut_behind(bin)
                                   : cut_between(row_[row - 1].score, row_[row].score);
      threshold = {value, Rule::gini, impurity};
      return true;
    });
    return threshold;
  }

  double cut_behind(std::int64_t bin) const {
    double below = -infinity, above = infinity;
    for (std::int64_t i = 0; i < scores_.n_rows; ++i) {
      const double score = scores_.score[i];
      if (bin_of(score) <= bin)
        below = std::max(below, score);
      else
        above = std::min(above, score);
    }
    return cut_between(below, above);
  }

  Scores scores_{};
  double lowest_ = 0.0, scale_ = 0.0;
  std::int64_t n_bins_ = 1, last_bin_ = 0;
  LeftSide whole_;
  LeftSide bin_[most_bins];
  std::int64_t size_[most_bins];
  double bound_[most_bins];
  bool is_sorted_[most_bins];
  std::vector<Row> row_;
};

}  // namespace lhtree
