// Thresholds that leave a least weight on both sides (`min_samples_leaf`).
//
// They are asked for rarely, so plain loops and one sort do.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "rules.hpp"
#include "score_kernels.hpp"
#include "threshold.hpp"

namespace lhtree {

/// Chooses among the cuts that leave enough on both sides; the rule of the answer is
/// `leaf` if there is none, or none purer than a limit.
class LimitedCutter {
 public:
  Threshold choose(const Scores& scores, const Rules& rules, const Extremes& target,
                   const Extremes& rest, double limit) {
    scores_ = scores;
    least_ = rules.min_samples_leaf;
    whole_ = sum_left(scores, infinity);
    const Threshold found =
        rules.cut == Cut::gini ? find_purest() : find_pure(target, rest, rules.gamma);
    return found.impurity < limit ? found : Threshold{};
  }

 private:
  bool is_enough(const LeftSide& left) const {
    return left.all >= least_ && whole_.all - left.all >= least_;
  }

  Threshold with_impurity(Threshold threshold) const {
    const LeftSide left = sum_left(scores_, threshold.value);
    threshold.impurity = find_impurity(left, whole_);
    return is_enough(left) ? threshold : Threshold{};
  }

  /// A pure piece that is too small, or leaves too little, gives way to the middle.
  Threshold find_pure(const Extremes& target, const Extremes& rest, double gamma) const {
    const Outside targets = count(0, scores_.n_targets, rest);
    const Outside others = count(scores_.n_targets, scores_.n_rows, target);
    const Threshold piece = with_impurity(choose_pure(targets, others, target, rest, gamma));
    if (piece.rule != Rule::leaf) return piece;
    return with_impurity(choose_pure(targets, others, target, rest, infinity));
  }

  Outside count(std::int64_t begin, std::int64_t end, const Extremes& other) const {
    Outside outside{};
    for (std::int64_t i = begin; i < end; ++i) {
      if (scores_.score[i] < other.min) outside.below += scores_.weight_of(i);
      if (scores_.score[i] > other.max) outside.above += scores_.weight_of(i);
    }
    return outside;
  }

  Threshold find_purest() {
    order_.resize(scores_.n_rows);
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](std::int64_t a, std::int64_t b) { return scores_.score[a] < scores_.score[b]; });
    double least = infinity;
    walk([&](double impurity, double) {
      least = std::min(least, impurity);
      return false;
    });
    Threshold lowest;
    walk([&](double impurity, double value) {
      if (impurity > least + same_impurity) return false;
      lowest = {value, Rule::gini, impurity};
      return true;
    });
    return lowest;
  }

  /// Call visit(impurity, cut) for every cut that is allowed, ascending, until it returns true.
  template <class Visit>
  void walk(const Visit& visit) const {
    LeftSide left;
    for (std::size_t k = 0; k + 1 < order_.size(); ++k) {
      const std::int64_t i = order_[k];
      left.all += scores_.weight_of(i);
      if (i < scores_.n_targets) left.target += scores_.weight_of(i);
      const double below = scores_.score[i], above = scores_.score[order_[k + 1]];
      if (below < above && is_enough(left) &&
          visit(find_impurity(left, whole_), cut_between(below, above)))
        return;
    }
  }

  Scores scores_{};
  LeftSide whole_;
  double least_ = 0.0;
  std::vector<std::int64_t> order_;  // rows by ascending projection
};

}  // namespace lhtree
