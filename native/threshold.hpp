// The constant that cuts the projections of a node.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "pages.hpp"
#include "rules.hpp"
#include "score_kernels.hpp"

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

/// Gini impurity of a cut, up to the factor two, from its purity; see find_purity.
inline double find_impurity(double purity, LeftSide whole) {
  return (whole.target - purity) / whole.all;
}

/// The same from the weights on its left. A side that holds rows may weigh nothing, if
/// weights are so far apart that sums lose the small ones; its share then counts nothing.
inline double find_impurity(LeftSide left, LeftSide whole) {
  const double right = whole.all - left.all, right_target = whole.target - left.target;
  const double right_purity = right > 0.0 ? right_target * right_target / right : 0.0;
  return find_impurity(left.target * left.target / left.all + right_purity, whole);
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
inline Threshold choose_pure(const Outside& targets, const Outside& others, const Extremes& target,
                             const Extremes& rest, double gamma) {
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
/// Projections are counted in bins. How pure the cuts inside a bin can be is bounded by
/// its counts, see find_purity: only bins that may hold the best cut are sorted.
class GiniCutter {
 public:
  /// The projections must not all be equal. A cut that is not purer than `limit`, or leaves
  /// less than `least` on a side, is not looked for: the rule is `leaf` if there is no other.
  Threshold choose(const Scores& scores, double lowest, double highest, double limit,
                   double least) {
    scores_ = scores;
    least_ = least;
    count(lowest, highest);
    double behind[most_bins];
    find_purity(target_, all_, last_bin_ + 1, behind, bound_);
    double purest = 0.0, largest_bound = 0.0;
    for (std::int64_t b = 0; b <= last_bin_; ++b) {
      if (size_[b] == 0) continue;
      if (may_be_cut(b)) largest_bound = std::max(largest_bound, bound_[b]);
      if (b < last_bin_ && is_allowed(all_[b + 1])) purest = std::max(purest, behind[b]);
    }
    if (find_impurity(std::max(purest, largest_bound), whole_) >= limit) return {};
    const double least_impurity =
        std::min(purest > 0.0 ? find_impurity(purest, whole_) : infinity, sort_bins(purest));
    const Threshold threshold = find_lowest(least_impurity + same_impurity);
    if (row_.capacity() > most_kept) PageVector<Row>().swap(row_);
    return threshold;
  }

 private:
  struct Row {
    double score;
    std::uint32_t number;
  };
  static constexpr std::int64_t most_bins = 2048;
  static constexpr std::size_t most_kept = 1 << 15;  // sorted rows; more would take much memory

  /// Whether a cut with this weight on its left leaves enough on both sides. Rounding may
  /// leave less than nothing.
  bool is_allowed(double left) const {
    return least_ == 0.0 || (left >= least_ && whole_.all - left >= least_);
  }

  /// Whether cuts inside a bin may be allowed.
  bool may_be_cut(std::int64_t bin) const {
    return size_[bin] > 1 && all_[bin + 1] >= least_ && whole_.all - all_[bin] >= least_;
  }

  /// Bins take time themselves; but the larger a node, the more rows of a bin must be sorted.
  static std::int64_t count_bins(std::int64_t n_rows) {
    constexpr std::int64_t few = 256;
    return std::clamp(n_rows / 32, std::clamp<std::int64_t>(n_rows / 4, 1, few), most_bins);
  }

  void count(double lowest, double highest) {
    n_bins_ = count_bins(scores_.n_rows);
    double scale = static_cast<double>(n_bins_) / (highest - lowest);
    if (!std::isfinite(scale) || !(scale > 0.0)) n_bins_ = 1, scale = 0.0;
    code_.resize(scores_.n_rows);
    find_bins(scores_.score, scores_.n_rows, lowest, scale, static_cast<std::int32_t>(n_bins_ - 1),
              code_.data());
    std::int64_t n_targets[most_bins], n_rest[most_bins];
    count_codes(0, scores_.n_targets, n_targets);
    count_codes(scores_.n_targets, scores_.n_rows, n_rest);
    target_[0] = all_[0] = 0.0;
    for (std::int64_t b = 0; b < n_bins_; ++b) {
      size_[b] = n_targets[b] + n_rest[b];
      if (size_[b] > 0) last_bin_ = b;
      target_[b + 1] = target_[b] + static_cast<double>(n_targets[b]);
      all_[b + 1] = all_[b] + static_cast<double>(size_[b]);
    }
    if (scores_.weight) weigh_bins();
    whole_ = {target_[n_bins_], all_[n_bins_]};
  }

  void count_codes(std::int64_t begin, std::int64_t end, std::int64_t* size) const {
    std::fill_n(size, n_bins_, 0);
    for (std::int64_t i = begin; i < end; ++i) ++size[code_[i]];
  }

  void weigh_bins() {
    std::fill_n(target_, n_bins_ + 1, 0.0);
    std::fill_n(all_, n_bins_ + 1, 0.0);
    for (std::int64_t i = 0; i < scores_.n_rows; ++i) {
      all_[code_[i] + 1] += scores_.weight[i];
      if (i < scores_.n_targets) target_[code_[i] + 1] += scores_.weight[i];
    }
    for (std::int64_t b = 0; b < n_bins_; ++b) {
      target_[b + 1] += target_[b];
      all_[b + 1] += all_[b];
    }
  }

  /// Sort the rows of the bins that may hold a cut as good as that of purity `purest`;
  /// returns the least impurity found inside them.
  double sort_bins(double purest) {
    row_.clear();
    const double least_bound = purest - same_impurity * whole_.all;
    std::int64_t n_sorted = 0;
    for (std::int64_t b = 0; b <= last_bin_; ++b) {
      is_sorted_[b] = may_be_cut(b) && bound_[b] >= least_bound;
      if (is_sorted_[b]) n_sorted += size_[b];
    }
    row_.reserve(n_sorted);
    for (std::int64_t i = 0; i < scores_.n_rows; ++i)
      if (is_sorted_[code_[i]]) row_.push_back({scores_.score[i], static_cast<std::uint32_t>(i)});
    std::sort(row_.begin(), row_.end(),
              [](const Row& a, const Row& b) { return a.score < b.score; });
    double best = infinity;
    walk_cuts([&](double impurity, std::int64_t, std::int64_t) {
      best = std::min(best, impurity);
      return false;
    });
    return best;
  }

  /// Call visit(impurity, bin, row) for every allowed cut in ascending order until it returns
  /// true: cuts inside a sorted bin lie before `row`, those behind a bin have row -1.
  template <class Visit>
  void walk_cuts(const Visit& visit) const {
    std::int64_t next = 0;
    for (std::int64_t b = 0; b <= last_bin_; ++b) {
      LeftSide inner{target_[b], all_[b]};
      const std::int64_t begin = next, end = next + (is_sorted_[b] ? size_[b] : 0);
      for (; next < end; ++next) {
        if (next > begin && row_[next - 1].score < row_[next].score && is_allowed(inner.all) &&
            visit(find_impurity(inner, whole_), b, next))
          return;
        const std::int64_t i = row_[next].number;
        inner.all += scores_.weight_of(i);
        if (i < scores_.n_targets) inner.target += scores_.weight_of(i);
      }
      const LeftSide left{target_[b + 1], all_[b + 1]};
      if (size_[b] > 0 && b < last_bin_ && is_allowed(left.all) &&
          visit(find_impurity(left, whole_), b, -1))
        return;
    }
  }

  Threshold find_lowest(double limit) const {
    Threshold threshold;
    walk_cuts([&](double impurity, std::int64_t bin, std::int64_t row) {
      if (impurity > limit) return false;
      const double value =
          row < 0 ? cut_behind(bin) : cut_between(row_[row - 1].score, row_[row].score);
      threshold = {value, Rule::gini, impurity};
      return true;
    });
    return threshold;
  }

  double cut_behind(std::int64_t bin) const {
    double below = -infinity, above = infinity;
    for (std::int64_t i = 0; i < scores_.n_rows; ++i) {
      if (code_[i] <= bin)
        below = std::max(below, scores_.score[i]);
      else
        above = std::min(above, scores_.score[i]);
    }
    return cut_between(below, above);
  }

  Scores scores_{};
  std::int64_t n_bins_ = 1, last_bin_ = 0;
  LeftSide whole_;
  double least_ = 0.0;              // weight that a cut must leave on both sides
  PageVector<std::uint16_t> code_;  // bin of each row
  double target_[most_bins + 1];    // weighted targets before each bin, and all
  double all_[most_bins + 1];       // weighted rows before each bin, and all
  std::int64_t size_[most_bins];
  double bound_[most_bins];
  bool is_sorted_[most_bins];
  PageVector<Row> row_;
};

}  // namespace lhtree
