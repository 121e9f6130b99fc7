// Pure pieces that leave a least weight on both sides (`min_samples_leaf`).
//
// They are asked for rarely, so plain loops do.
#pragma once

#include <cstdint>

#include "score_kernels.hpp"
#include "threshold.hpp"

namespace lhtree {

/// How much of the rows from `begin` to `end` lies outside of the other class.
inline Outside weigh_outside(const Scores& scores, std::int64_t begin, std::int64_t end,
                             const Extremes& other) {
  Outside outside{};
  for (std::int64_t i = begin; i < end; ++i) {
    if (scores.score[i] < other.min) outside.below += scores.weight_of(i);
    if (scores.score[i] > other.max) outside.above += scores.weight_of(i);
  }
  return outside;
}

/// Cut off the largest pure piece. One that weighs less than `least`, or leaves less, gives
/// way to the middle; the rule is `leaf` if that does so, too.
inline Threshold choose_pure(const Scores& scores, const Extremes& target, const Extremes& rest,
                             double gamma, double least) {
  const Outside targets = weigh_outside(scores, 0, scores.n_targets, rest);
  const Outside others = weigh_outside(scores, scores.n_targets, scores.n_rows, target);
  const double whole = sum_left(scores, infinity).all;
  for (const double smallest : {gamma, infinity}) {
    const Threshold threshold = choose_pure(targets, others, target, rest, smallest);
    const double left = sum_left(scores, threshold.value).all;
    if (left >= least && whole - left >= least) return threshold;
  }
  return {};
}

}  // namespace lhtree
