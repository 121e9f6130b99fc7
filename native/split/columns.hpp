// The cut of largest gain among the single columns of a node.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/instructions.hpp"
#include "base/reals.hpp"
#include "base/table.hpp"
#include "split/gain.hpp"
#include "split/split.hpp"
#include "stats/histogram.hpp"

namespace lhtree::split {

constexpr double category_smoothing = 10.0;  // rows of hessian one, added to each category

/// Looks at all cuts of some columns; the first of equal ones wins.
template <class Row>
class ColumnSearch {
 public:
  using Sums = typename Row::Sums;

  ColumnSearch(const base::Layout& layout, const Limits& limits, const Constraints& constraints,
               double hessian_of_row)
      : layout_(layout),
        limits_(limits),
        constraints_(constraints),
        smoothing_(category_smoothing * hessian_of_row) {}

  /// Replace `best` if a column from `first` to `last` has a cut of a larger score. The others
  /// than those marked by `takes_part` are left out; null: none is. `bounds` of the node are null
  /// where no column has a trend.
  void run(const stats::Histogram<Row>& histogram, const Sums& whole, std::int64_t first,
           std::int64_t last, const std::uint8_t* takes_part, const StepBounds* bounds,
           Split<Sums>& best) {
    start(whole, bounds);
    for (std::int64_t j = first; j < last; ++j) {
      if (takes_part && !takes_part[j]) continue;
      if constexpr (Row::is_packed)
        if (histogram.is_packed) {
          look_at_column(j, histogram.words.data() + layout_.start[j], best);
          continue;
        }
      look_at_column(j, histogram.sums.data() + layout_.start[j], best);
    }
  }

  /// Begin with a node.
  void start(const Sums& whole, const StepBounds* bounds) {
    whole_ = whole;
    bounds_ = bounds;
    if (bounds) node_score_ = score_node(whole, limits_, *bounds);
  }

  /// The same for column j of the node begun, of which the bins with rows are listed: cuts lie
  /// amid the gaps between them. A cell has the sums of a bin, or a word of them.
  template <class Cell>
  void run_present(std::int64_t j, const Cell* bin, const int* present, int n_present,
                   Split<Sums>& best) {
    const base::ColumnInfo& column = layout_.column[j];
    if (column.is_category) return look_at_codes(j, bin, column.n_bins + 1, best);
    const bool has_missing = present[n_present - 1] == column.n_bins;
    const int n = n_present - has_missing;
    if (n == 0) return;
    n_ordered_ = n - 1;
    cut_order_ = constraints_.trend_of(j);
    const auto get_bin = [=](int k) -> const Cell& { return bin[present[k]]; };
    const auto get_cut = [&](int k) {
      return k + 1 < n ? (present[k] + present[k + 1]) / 2 : column.n_bins - 1;
    };
    look_at(j, get_bin, get_cut, has_missing ? n : n - 1, Cell{}, false, best);
    if (has_missing) look_at(j, get_bin, get_cut, n - 1, bin[column.n_bins], true, best);
  }

 private:
  /// Look at a column of sums, or of words of them.
  template <class Cell>
  void look_at_column(std::int64_t j, const Cell* bin, Split<Sums>& best) {
    const base::ColumnInfo& column = layout_.column[j];
    const int n_bins = column.n_bins;
    if (column.is_category) return look_at_codes(j, bin, n_bins + 1, best);
    n_ordered_ = n_bins - 1;  // after the last present bin, all present go left
    cut_order_ = constraints_.trend_of(j);
    const auto get_bin = [=](int b) -> const Cell& { return bin[b]; };
    const auto get_cut = [](int b) { return b; };
    const bool has_missing = !bin[n_bins].is_empty();
    look_at(j, get_bin, get_cut, has_missing ? n_bins : n_bins - 1, Cell{}, false, best);
    if (has_missing) look_at(j, get_bin, get_cut, n_bins - 1, bin[n_bins], true, best);
  }

  void look_at_codes(std::int64_t j, const Sums* bin, int n_codes, Split<Sums>& best) {
    look_at_categories(j, bin, n_codes, best);
  }
  void look_at_codes(std::int64_t j, const stats::PackedRow* bin, int n_codes, Split<Sums>& best) {
    if constexpr (Row::is_packed) {
      std::array<Sums, base::most_codes> sums;
      for (int code = 0; code < n_codes; ++code) sums[code] = bin[code].unpack();
      look_at_categories(j, sums.data(), n_codes, best);
    }
  }

  /// Look at cuts of a column of numbers, the bins before which go left; `left` is what goes left
  /// before the first.
  template <class GetBin, class GetCut>
  void look_at(std::int64_t column, const GetBin& get_bin, const GetCut& get_cut, int n_cuts,
               Sums left, bool missing_left, Split<Sums>& best) {
    const int b = choose(n_cuts, left, get_bin, best.score, 0);
    if (b < 0) return;
    best = {score_[b], column, get_cut(b), missing_left, {}, {}, 0, left};
    for (int k = 0; k <= b; ++k) best.left += get_bin(k);
  }

  /// The same of words.
  template <class GetBin, class GetCut>
  void look_at(std::int64_t column, const GetBin& get_bin, const GetCut& get_cut, int n_cuts,
               stats::PackedRow left, bool missing_left,
               Split<Sums>& best) requires Row::is_packed {
    for (int b = 0; b < n_cuts; ++b) {
      left += get_bin(b);
      left_word_[b] = left.word;
    }
    unpack(n_cuts);
    const int b = find_highest(n_cuts, best.score, 0);
    if (b < 0) return;
    best = {score_[b], column, get_cut(b), missing_left,
            {},        {},     0,          stats::PackedRow{left_word_[b]}.unpack()};
  }

  /// Turn words into doubles. Shifts without a sign are those that vectors have.
  void unpack(int n_cuts) {
    const std::int64_t* word = left_word_;
    double *g = left_g_, *h = left_h_;
    base::run_wide([=]() LHTREE_FLAT {
      constexpr int low_bits = stats::PackedRow::low_bits;
      constexpr std::uint64_t sign = std::uint64_t{1} << 63,
                              low = (std::uint64_t{1} << low_bits) - 1;
      for (int b = 0; b < n_cuts; ++b) {
        const auto bits = static_cast<std::uint64_t>(word[b]);
        const auto high = static_cast<std::int64_t>((bits ^ sign) >> low_bits);
        g[b] = base::to_double(high - static_cast<std::int64_t>(sign >> low_bits));
        h[b] = base::to_double(static_cast<std::int64_t>(bits & low));
      }
    });
  }

  /// Categories by their mean gradient; those that the node lacks go to the heavier side.
  void look_at_categories(std::int64_t column, const Sums* bin, int n_codes, Split<Sums>& best) {
    int n = 0;
    for (int code = 0; code < n_codes; ++code) {
      if (bin[code].is_empty()) continue;
      const auto h = static_cast<double>(bin[code].h);
      order_[n++] = {static_cast<double>(bin[code].g) / (h + smoothing_), code};
    }
    std::sort(order_.begin(), order_.begin() + n);
    const double price = limits_.category_price * (n - 1);
    n_ordered_ = 0;  // categories have no trend
    const auto get_bin = [&](int k) -> const Sums& { return bin[order_[k].second]; };
    const int b = choose(n - 1, {}, get_bin, best.score, price);
    if (b < 0) return;
    best = {score_[b] - price, column, -1, false, {}, {}, 0, {}};
    for (int k = 0; k <= b; ++k) {
      best.codes.insert(order_[k].second);
      best.left += bin[order_[k].second];
    }
    if (2 * best.left.h < whole_.h) return;
    for (int code = 0; code < base::most_codes; ++code)
      if (code >= n_codes || bin[code].is_empty()) best.codes.insert(code);
  }

  /// The cut of the largest score, the first of equal ones; -1 if none is above `least` after
  /// `price` was paid.
  template <class GetBin>
  int choose(int n_cuts, Sums left, const GetBin& get_bin, double least, double price) {
    for (int b = 0; b < n_cuts; ++b) {
      left += get_bin(b);
      left_g_[b] = static_cast<double>(left.g);
      left_h_[b] = static_cast<double>(left.h);
      if constexpr (has_weight) {
        const Sums right = whole_ - left;
        right_g_[b] = static_cast<double>(right.g);
        right_h_[b] = static_cast<double>(right.h);
        left_w_[b] = left.w;
      }
    }
    return find_highest(n_cuts, least, price);
  }

  int find_highest(int n_cuts, double least, double price) {
    const double highest = bounds_ ? score_within(*bounds_, n_cuts) : score_cuts(n_cuts);
    if (!(highest - price > least)) return -1;
    int b = 0;
    while (score_[b] != highest) ++b;
    return b;
  }

  double score_cuts(int n_cuts) {
    // Without weights, sums are below 2**53: what is right follows in doubles.
    const double g = static_cast<double>(whole_.g), h = static_cast<double>(whole_.h);
    const double ridge = limits_.ridge, least = limits_.least_hessian;
    const double *left_g = left_g_, *left_h = left_h_, *right_g = right_g_, *right_h = right_h_;
    double* result = score_;
    double highest = 0.0;
    double* best = &highest;
    base::run_wide([=]() LHTREE_FLAT {
      for (int b = 0; b < n_cuts; ++b) {
        const double a = left_g[b], x = left_h[b];
        const double c = has_weight ? right_g[b] : g - a, y = has_weight ? right_h[b] : h - x;
        const double score = compute_split_score(a, x, c, y, ridge);
        result[b] = x >= least && y >= least ? score : 0.0;
      }
      double most = 0.0;
      for (int b = 0; b < n_cuts; ++b) most = result[b] > most ? result[b] : most;
      *best = most;
    });
    return has_weight ? drop_light(n_cuts) : highest;
  }

  double score_within(const StepBounds& bounds, int n_cuts) {
    const double g = static_cast<double>(whole_.g), h = static_cast<double>(whole_.h);
    const double ridge = limits_.ridge, least = limits_.least_hessian;
    double highest = 0.0;
    for (int b = 0; b < n_cuts; ++b) {
      const double a = left_g_[b], x = left_h_[b];
      const double c = has_weight ? right_g_[b] : g - a, y = has_weight ? right_h_[b] : h - x;
      const double order = b < n_ordered_ ? cut_order_ : 0.0;
      score_[b] = x >= least && y >= least
                      ? compute_gain(a, x + ridge, c, y + ridge, node_score_, bounds, order)
                      : 0.0;
      highest = std::max(highest, score_[b]);
    }
    return has_weight ? drop_light(n_cuts) : highest;
  }

  /// Drop cuts with too little weight on a side; returns the highest score that is left.
  double drop_light(int n_cuts) {
    double highest = 0.0;
    for (int b = 0; b < n_cuts; ++b) {
      if constexpr (has_weight)
        if (std::min(left_w_[b], whole_.w - left_w_[b]) < limits_.least_weight) score_[b] = 0.0;
      highest = std::max(highest, score_[b]);
    }
    return highest;
  }

  static constexpr bool has_weight = Row::has_weight;

  const base::Layout& layout_;
  const Limits& limits_;
  const Constraints& constraints_;
  double smoothing_;
  Sums whole_;
  const StepBounds* bounds_ = nullptr;
  double node_score_ = 0.0;  // within the bounds
  double cut_order_ = 0.0;   // of cuts before `n_ordered_`
  int n_ordered_ = 0;
  std::array<std::pair<double, int>, base::most_codes> order_;
  alignas(64) double left_g_[base::most_codes];
  alignas(64) double left_h_[base::most_codes];
  alignas(64) double score_[base::most_codes];
  alignas(64) std::int64_t left_word_[base::most_codes];
  alignas(64) double right_g_[has_weight ? base::most_codes : 1];
  alignas(64) double right_h_[has_weight ? base::most_codes : 1];
  std::int64_t left_w_[has_weight ? base::most_codes : 1];
};

}  // namespace lhtree::split
