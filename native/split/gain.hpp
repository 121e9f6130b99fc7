// The cut of largest gain among the single columns of a node.
#pragma once

#include <cstdint>

#include "base/binned_table.hpp"
#include "stats/histogram.hpp"

namespace lhtree::split {

/// What a split must fulfil.
struct Limits {
  double ridge = 0.0;          // added to every sum of hessians
  double least_hessian = 0.0;  // of a side
};

/// Rows whose bin is at most `cut` go left; missing values as they are told.
struct AxisSplit {
  std::int64_t column = -1;  // -1: the node cannot be split
  int cut = -1;
  bool missing_left = false;
  double gain = 0.0;
  stats::Sums left;
};

inline double compute_score(double g, double h, double ridge) {
  return h + ridge > 0.0 ? g * g / (h + ridge) : 0.0;
}

/// The score of a cut, 0 if a side has too little.
inline double compute_cut_score(const stats::Sums& left, const stats::Sums& whole,
                                const Limits& limits) {
  const auto a = static_cast<double>(left.g), x = static_cast<double>(left.h);
  const double c = static_cast<double>(whole.g) - a, y = static_cast<double>(whole.h) - x;
  const double xr = x + limits.ridge, yr = y + limits.ridge;
  const double score = (a * a * yr + c * c * xr) / (xr * yr);
  return x >= limits.least_hessian && y >= limits.least_hessian ? score : 0.0;
}

/// Looks at all cuts of all columns; the first of equal ones wins.
class GainSearch {
 public:
  GainSearch(const base::BinnedTable& table, const Limits& limits)
      : table_(table), limits_(limits) {}

  /// The best score so far, which other candidates must exceed.
  double best_score() const { return best_score_; }
  double parent_score() const { return parent_; }

  AxisSplit run(const stats::Histogram& histogram, const stats::Sums& whole) {
    whole_ = whole;
    parent_ =
        compute_score(static_cast<double>(whole.g), static_cast<double>(whole.h), limits_.ridge);
    best_score_ = parent_ * (1.0 + 0x1p-40);  // more than rounding
    best_ = {};
    for (std::int64_t j = 0; j < table_.n_columns; ++j) {
      const stats::Sums* bin = histogram.data() + table_.start[j];
      const int n_bins = table_.n_bins[j];
      const stats::Sums missing = bin[n_bins];
      look_at(j, bin, missing.h > 0 ? n_bins : n_bins - 1, {}, false);
      if (missing.h > 0) look_at(j, bin, n_bins - 1, missing, true);
    }
    return best_;
  }

 private:
  /// Look at the cuts of a column; `left` is what goes left before the first bin.
  void look_at(std::int64_t column, const stats::Sums* bin, int n_cuts, stats::Sums left,
               bool missing_left) {
    const double g = static_cast<double>(whole_.g), h = static_cast<double>(whole_.h);
    for (int b = 0; b < n_cuts; ++b) {
      left.g += bin[b].g;
      left.h += bin[b].h;
      left_g_[b] = static_cast<double>(left.g);
      left_h_[b] = static_cast<double>(left.h);
    }
    double highest = 0.0;
    for (int b = 0; b < n_cuts; ++b) {
      const double a = left_g_[b], c = g - a;
      const double x = left_h_[b], y = h - x;
      const double xr = x + limits_.ridge, yr = y + limits_.ridge;
      const double score = (a * a * yr + c * c * xr) / (xr * yr);
      const bool is_allowed = x >= limits_.least_hessian && y >= limits_.least_hessian;
      score_[b] = is_allowed ? score : 0.0;
    }
    for (int b = 0; b < n_cuts; ++b) highest = score_[b] > highest ? score_[b] : highest;
    if (!(highest > best_score_)) return;
    int b = 0;
    while (score_[b] != highest) ++b;
    best_score_ = highest;
    best_ = {column,
             b,
             missing_left,
             highest - parent_,
             {static_cast<std::int64_t>(left_g_[b]), static_cast<std::int64_t>(left_h_[b])}};
  }

  const base::BinnedTable& table_;
  Limits limits_;
  stats::Sums whole_;
  double parent_ = 0.0, best_score_ = 0.0;
  AxisSplit best_;
  alignas(64) double left_g_[base::most_codes];
  alignas(64) double left_h_[base::most_codes];
  alignas(64) double score_[base::most_codes];
};

}  // namespace lhtree::split
