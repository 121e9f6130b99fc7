// The cut of least Gini impurity.
//
// Projections are counted in bins. How pure the cuts inside a bin can be is bounded by its
// counts, see find_purity: only bins that may hold the best cut are opened and sorted. Columns of
// few values, indicators above all, have bins of equal rows: there is no cut inside these.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "pages.hpp"
#include "rules.hpp"
#include "score_kernels.hpp"
#include "threshold.hpp"

namespace lhtree {

/// Finds the cut of least Gini impurity; keeps its buffers between nodes.
class GiniCutter {
 public:
  /// The projections must not all be equal. A cut that is not purer than `limit`, or leaves
  /// less than `least` on a side, is not looked for: the rule is `leaf` if there is no other.
  Threshold choose(const Scores& scores, double lowest, double highest, double limit,
                   double least) {
    scores_ = scores;
    least_ = least;
    count(lowest, highest);
    const double purest = find_purest_between();
    open_bins(purest);
    if (!may_beat(limit, purest)) return {};
    if (n_open_ > scores_.n_rows / crowded_part) {
      close_constant_bins();
      if (!may_beat(limit, purest)) return {};
    }
    sort_open_bins();
    double least_impurity = purest > 0.0 ? find_impurity(purest, whole_) : infinity;
    walk_cuts([&](double impurity, std::int64_t, std::int64_t) {
      least_impurity = std::min(least_impurity, impurity);
      return false;
    });
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
  static constexpr std::int64_t crowded_part = 8;    // of all rows; of more, many may be equal
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
    std::uint32_t n_targets[most_bins], n_rest[most_bins];
    count_codes(0, scores_.n_targets, n_targets);
    count_codes(scores_.n_targets, scores_.n_rows, n_rest);
    target_[0] = all_[0] = 0.0;
    for (std::int64_t b = 0; b < n_bins_; ++b) {
      size_[b] = std::int64_t{n_targets[b]} + n_rest[b];
      if (size_[b] > 0) last_bin_ = b;
      target_[b + 1] = target_[b] + static_cast<double>(n_targets[b]);
      all_[b + 1] = all_[b] + static_cast<double>(size_[b]);
    }
    if (scores_.weight) weigh_bins();
    whole_ = {target_[n_bins_], all_[n_bins_]};
  }

  /// Two counters for each bin: one that was just changed has to be waited for.
  void count_codes(std::int64_t begin, std::int64_t end, std::uint32_t* size) const {
    std::uint32_t other[most_bins];
    std::fill_n(size, n_bins_, 0u);
    std::fill_n(other, n_bins_, 0u);
    const std::uint16_t* code = code_.data();
    std::int64_t i = begin;
    for (; i + 1 < end; i += 2) {
      ++size[code[i]];
      ++other[code[i + 1]];
    }
    if (i < end) ++size[code[i]];
    for (std::int64_t b = 0; b < n_bins_; ++b) size[b] += other[b];
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

  /// Purity of the best cut between two bins; fills the bounds of those inside.
  double find_purest_between() {
    double behind[most_bins];
    find_purity(target_, all_, last_bin_ + 1, behind, bound_);
    double purest = 0.0;
    for (std::int64_t b = 0; b < last_bin_; ++b)
      if (size_[b] > 0 && is_allowed(all_[b + 1])) purest = std::max(purest, behind[b]);
    return purest;
  }

  /// Open the bins that may hold a cut as good as that of purity `purest`.
  void open_bins(double purest) {
    const double least_bound = purest - same_impurity * whole_.all;
    n_open_ = 0;
    for (std::int64_t b = 0; b <= last_bin_; ++b) {
      is_open_[b] = may_be_cut(b) && bound_[b] >= least_bound;
      if (is_open_[b]) n_open_ += size_[b];
    }
  }

  /// Whether a cut between bins, of purity `purest` at best, or inside an open one may have less
  /// impurity than `limit`.
  bool may_beat(double limit, double purest) const {
    for (std::int64_t b = 0; b <= last_bin_; ++b)
      if (is_open_[b]) purest = std::max(purest, bound_[b]);
    return !(find_impurity(purest, whole_) >= limit);
  }

  void close_constant_bins() {
    const double* score = scores_.score;
    double some[most_bins];  // value of a row in each bin
    bool varies[most_bins];
    std::fill_n(varies, last_bin_ + 1, false);
    for (std::int64_t i = 0; i < scores_.n_rows; ++i) some[code_[i]] = score[i];
    for (std::int64_t i = 0; i < scores_.n_rows; ++i)
      if (score[i] != some[code_[i]]) varies[code_[i]] = true;
    for (std::int64_t b = 0; b <= last_bin_; ++b) {
      if (!is_open_[b] || varies[b]) continue;
      is_open_[b] = false;
      n_open_ -= size_[b];
    }
  }

  /// List the rows of open bins, bin by bin, each sorted.
  void sort_open_bins() {
    std::int64_t end[most_bins];  // of the rows so far, by bin
    std::int64_t n_before = 0;
    for (std::int64_t b = 0; b <= last_bin_; ++b) {
      end[b] = n_before;
      if (is_open_[b]) n_before += size_[b];
    }
    remake(row_, n_open_);
    visit_open_rows([&](std::int64_t i) {
      row_[end[code_[i]]++] = {scores_.score[i], static_cast<std::uint32_t>(i)};
    });
    for (std::int64_t b = 0; b <= last_bin_; ++b)
      if (is_open_[b]) sort_rows(row_.data() + end[b] - size_[b], row_.data() + end[b]);
  }

  /// Call visit(row) for all rows of open bins.
  template <class Visit>
  void visit_open_rows(const Visit& visit) const {
    constexpr std::int64_t block = 256;
    std::int64_t number[block];
    for (std::int64_t begin = 0; begin < scores_.n_rows; begin += block) {
      // Every row is listed and the next one takes its place: branches would be hard to predict.
      const std::int64_t n = std::min(block, scores_.n_rows - begin);
      std::int64_t n_listed = 0;
      for (std::int64_t i = begin; i < begin + n; ++i) {
        number[n_listed] = i;
        n_listed += is_open_[code_[i]];
      }
      for (std::int64_t k = 0; k < n_listed; ++k) visit(number[k]);
    }
  }

  static void sort_rows(Row* begin, Row* end) {
    const bool is_constant =
        std::all_of(begin, end, [=](const Row& row) { return row.score == begin->score; });
    if (!is_constant)
      std::sort(begin, end, [](const Row& a, const Row& b) { return a.score < b.score; });
  }

  /// Call visit(impurity, bin, row) for every allowed cut in ascending order until it returns
  /// true: cuts inside an open bin lie before `row`, those behind a bin have row -1.
  template <class Visit>
  void walk_cuts(const Visit& visit) const {
    std::int64_t next = 0;
    for (std::int64_t b = 0; b <= last_bin_; ++b) {
      LeftSide inner{target_[b], all_[b]};
      const std::int64_t begin = next, end = next + (is_open_[b] ? size_[b] : 0);
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
    const Edge edge =
        find_edge(scores_.score, code_.data(), scores_.n_rows, static_cast<std::uint16_t>(bin));
    return cut_between(edge.below, edge.above);
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
  bool is_open_[most_bins];
  std::int64_t n_open_ = 0;  // rows in open bins
  PageVector<Row> row_;      // those of open bins, sorted
};

}  // namespace lhtree
