// Splits from several candidates over few random columns, the best by Gini.
//
// A node draws some columns. Each of them is tried alone, and contrasts are tried over
// all of them, their halves, and so on. Only the columns drawn are read. They are gathered side by
// side, so the table is kept column by column.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "column_room.hpp"
#include "contrast.hpp"
#include "gini_cutter.hpp"
#include "limited_cut.hpp"
#include "node.hpp"
#include "pages.hpp"
#include "projection_kernels.hpp"
#include "random.hpp"
#include "score_kernels.hpp"
#include "statistics.hpp"
#include "sum_kernels.hpp"
#include "threshold.hpp"

namespace lhtree {

/// A table by columns.
template <class T>
struct ColumnTable {
  const T* values;
  std::int64_t n_rows;
  std::int64_t n_columns;
  std::vector<std::uint8_t> has_missing;  // [n_columns] whether a column has NaN; empty: none

  ColumnTable(const T* values, std::int64_t n_rows, std::int64_t n_columns, bool may_miss)
      : values(values), n_rows(n_rows), n_columns(n_columns) {
    if (!may_miss) return;
    for (std::int64_t j = 0; j < n_columns; ++j)
      has_missing.push_back(
          std::any_of(column(j), column(j) + n_rows, [](T value) { return value != value; }));
  }

  const T* column(std::int64_t j) const { return values + j * n_rows; }
  bool misses(std::int64_t j) const { return !has_missing.empty() && has_missing[j]; }
};

/// Reads columns of a node's rows from a table by columns.
template <class T>
class ColumnReader {
 public:
  explicit ColumnReader(const ColumnTable<T>& table) : table_(table) {}

  std::int64_t n_columns() const { return table_.n_columns; }
  bool misses(std::int64_t j) const { return table_.misses(j); }
  void start(const NodeRows& rows) {
    assert(rows.rest.row == rows.target.row + rows.target.size);
    rows_ = rows;
  }
  static constexpr bool has_values(std::int64_t) { return true; }
  static constexpr bool reads_parts = true;

  /// Write the column's values in the rows of the node, targets first.
  void gather(std::int64_t j, double* value) const { gather(j, 0, rows_.size(), value); }

  /// The same for the rows from number `begin` to `end` of the node: the rest follows the targets.
  void gather(std::int64_t j, std::int64_t begin, std::int64_t end, double* value) const {
    gather_values(table_.column(j), rows_.target.row + begin, end - begin, value);
  }

 private:
  const ColumnTable<T>& table_;
  NodeRows rows_{};
};

/// The values of a column that are there, targets first, and their weights.
struct PresentValues {
  PageVector<double> value, weight;  // the weights are empty if every row counts once
  std::int64_t n_targets = 0;

  /// Copy what is there of `n` values, the first `n_all_targets` those of targets.
  void read(const double* all, const double* all_weight, std::int64_t n_all_targets,
            std::int64_t n) {
    value.clear();
    weight.clear();
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == n_all_targets) n_targets = size();
      if (all[i] != all[i]) continue;
      value.push_back(all[i]);
      if (all_weight) weight.push_back(all_weight[i]);
    }
  }

  std::int64_t size() const { return static_cast<std::int64_t>(value.size()); }
  bool has_both_sides() const { return 0 < n_targets && n_targets < size(); }
};

/// `Reader` is a ColumnReader or a SparseReader.
template <class Reader>
class SampledSplitter {
 public:
  struct State {};  // nothing is handed from parent to child

  SampledSplitter(Reader reader, const double* weight, const Rules& rules, ColumnRoom& room,
                  const StopFlag& stop)
      : reader_(std::move(reader)),
        weight_(weight),
        rules_(rules),
        stop_(stop),
        room_(room),
        column_(reader_.n_columns()) {
    std::iota(column_.begin(), column_.end(), 0);
  }

  const double* weight() const { return weight_; }

  State begin(const NodeRows& rows, std::uint64_t key) {
    const std::int64_t n_kept = rules_.n_columns_per_tree;
    if (n_kept > 0 && n_kept < reader_.n_columns()) {
      shuffle_columns(key, column_);
      column_.resize(n_kept);
      std::sort(column_.begin(), column_.end());
    }
    room_.resize(rows.size(), reader_.n_columns(), static_cast<std::int64_t>(count_wanted()),
                 Reader::reads_parts);
    return {};
  }

  void enter(const Pending<State>&, std::uint32_t*, std::size_t) {}
  void divide(State&, const NodeRows&, State&, const NodeRows&, State&) {}
  void release(State&) {}

  bool choose(const NodeRows& rows, State&, std::uint64_t key, double min_weight, Bench& bench) {
    start_node(rows);
    min_weight_ = min_weight;
    is_first_ = true;
    draw_columns(draw_key(key));
    if (rules_.contrast == Contrast::fisher && rules_.n_planes > 0) multiply_columns();
    const std::size_t n_drawn = drawn_.size();
    for (std::int64_t c = 0; c < rules_.n_planes; ++c) {
      const auto [begin, end] = find_part(static_cast<std::size_t>(c), n_drawn);
      try_plane(begin, end, bench);
    }
    if (rules_.axes)
      for (std::size_t k = 0; k < n_drawn; ++k) try_axis(k, bench);
    return !is_first_;
  }

  /// Call visit(column, moments) for every column that varies in a leaf.
  template <class Visit>
  void visit_columns(const NodeRows& rows, State&, const Visit& visit) {
    start_node(rows);
    for (const std::int32_t j : column_) {
      ColumnMoments moments;
      if (read_column(j, room_.score(), moments)) visit(j, moments);
    }
  }

 private:
  static constexpr std::int64_t factor_rows = ColumnRoom::block_rows;  // multiplied at a time

  /// Columns that a node draws.
  std::size_t count_wanted() const {
    const std::size_t m = column_.size();
    return rules_.n_columns > 0 ? std::min<std::size_t>(rules_.n_columns, m) : m;
  }

  void start_node(const NodeRows& rows) {
    rows_ = rows;
    reader_.start(rows);
    room_.start(rows.size());
    gather_weight(rows, row_weight_);
    weight_target_ = sum_weight(rows.target);
    weight_rest_ = sum_weight(rows.rest);
  }

  /// Shuffle the tree's columns on demand until enough are found that vary in the node.
  void draw_columns(std::uint64_t key) {
    const std::size_t m = column_.size(), n_wanted = count_wanted();
    drawn_.clear();
    swaps_.clear();
    for (std::size_t i = 0; i < m && drawn_.size() < n_wanted; ++i) {
      const std::size_t j = i + hash64(key, i) % (m - i);
      std::swap(column_[i], column_[j]);
      swaps_.push_back({i, j});
      ColumnMoments moments;
      const std::size_t k = drawn_.size();
      double* values = room_.holds(k) ? room_.column(k) : room_.score();
      if (read_column(column_[i], values, moments) && moments.variance() > rules_.alpha)
        drawn_.push_back({column_[i], moments});
    }
    // Undone in reverse, so that every draw starts from the same order.
    for (auto swap = swaps_.rbegin(); swap != swaps_.rend(); ++swap)
      std::swap(column_[swap->first], column_[swap->second]);
  }

  /// Gather a column of the node's rows and sum it; missing values become its mean.
  /// False if it is constant there, or if a side has no value.
  bool read_column(std::int64_t j, double* value, ColumnMoments& moments) {
    if (!reader_.has_values(j)) return false;
    check_stop(stop_);
    const std::int64_t n_targets = rows_.target.size, n = rows_.size();
    reader_.gather(j, value);
    std::fill(value + n, value + padded(n), 0.0);  // products are taken in whole lanes
    const double* weight = row_weight_.empty() ? nullptr : row_weight_.data();
    moments = {weight_target_, weight_rest_, 0.0, 0.0, 0.0, 0.0};
    if (!reader_.misses(j)) return sum_values({value, weight, n_targets, n}, moments);
    present_.read(value, weight, n_targets, n);
    if (present_.size() == n) return sum_values({value, weight, n_targets, n}, moments);
    if (!present_.has_both_sides() || !sum_present(moments)) return false;
    fill_missing(value, n, moments.mean());
    return true;
  }

  /// Sum the values of a column into `moments`, whose weights are there; false if it is
  /// constant.
  static bool sum_values(const Scores& values, ColumnMoments& moments) {
    add_about(values, 0.0, moments);
    const double scale = moments.square / moments.weight();
    if (moments.variance() > smallest_ratio * scale) return true;
    const Extremes extremes = find_extremes(values.score, values.n_rows);
    if (extremes.min == extremes.max) return false;
    add_about(values, extremes.min, moments);  // far from zero for its spread
    return true;
  }

  static void add_about(const Scores& values, double origin, ColumnMoments& moments) {
    const std::int64_t n_targets = values.n_targets;
    const double *value = values.score, *weight = values.weight;
    moments.origin = origin;
    moments.square = 0.0;
    moments.sum_target = add_values(value, weight, n_targets, origin, moments.square);
    moments.sum_rest = add_values(value + n_targets, weight ? weight + n_targets : nullptr,
                                  values.n_rows - n_targets, origin, moments.square);
  }

  bool sum_present(ColumnMoments& moments) const {
    const std::int64_t n_targets = present_.n_targets, n = present_.size();
    if (present_.weight.empty()) {
      moments.weight_target = static_cast<double>(n_targets);
      moments.weight_rest = static_cast<double>(n - n_targets);
      return sum_values({present_.value.data(), nullptr, n_targets, n}, moments);
    }
    const auto middle = present_.weight.begin() + n_targets;
    moments.weight_target = std::accumulate(present_.weight.begin(), middle, 0.0);
    moments.weight_rest = std::accumulate(middle, present_.weight.end(), 0.0);
    return sum_values({present_.value.data(), present_.weight.data(), n_targets, n}, moments);
  }

  /// Put a mean in the place of missing values.
  static void fill_missing(double* value, std::int64_t n, double mean) {
    std::replace_if(value, value + n, [](double x) { return x != x; }, mean);
  }

  /// The values of a drawn column in `n` rows of the node from number `begin` on: those that are
  /// held, or gathered anew into `room`.
  const double* find_values(std::size_t k, std::int64_t begin, std::int64_t n, double* room) {
    if constexpr (Reader::reads_parts) {
      if (!room_.holds(k)) {
        const auto& [feature, moments] = drawn_[k];
        reader_.gather(feature, begin, begin + n, room);
        if (reader_.misses(feature)) fill_missing(room, n, moments.mean());
        return room;
      }
    }
    return room_.column(k) + begin;
  }

  /// Call visit(begin, n) for parts of the node's rows, with the values of the drawn columns
  /// `place` there, in whole lanes, in `part_`.
  template <class Visit>
  void visit_parts(const std::vector<std::size_t>& place, const Visit& visit) {
    const bool is_held = drawn_.empty() || room_.holds(drawn_.size() - 1);
    const std::int64_t n_most = is_held ? rows_.size() : room_.part_rows();
    part_.resize(place.size());
    for (std::int64_t begin = 0; begin < rows_.size(); begin += n_most) {
      check_stop(stop_);
      const std::int64_t n = std::min(n_most, rows_.size() - begin);
      for (std::size_t t = 0; t < place.size(); ++t) {
        double* room = is_held ? nullptr : room_.part(t);
        part_[t] = find_values(place[t], begin, n, room);
        if (part_[t] == room) std::fill(room + n, room + padded(n), 0.0);
      }
      visit(begin, n);
    }
  }

  void try_axis(std::size_t k, Bench& bench) {
    const ColumnMoments& moments = drawn_[k].moments;
    trial_.terms.clear();
    trial_.terms.add(drawn_[k].feature, 1.0, moments.mean(), moments.variance());
    try_trial(find_values(k, 0, rows_.size(), room_.score()), bench);
  }

  /// Products of all pairs of drawn columns, as a lower triangle in rows. Blocks of rows
  /// stay in the fastest cache until all pairs are done.
  void multiply_columns() {
    const std::size_t p = drawn_.size();
    product_.assign(p * p, 0.0);
    left_factor_.resize(p);
    right_factor_.resize(p);
    place_.resize(p);
    std::iota(place_.begin(), place_.end(), std::size_t{0});
    visit_parts(place_, [&](std::int64_t first, std::int64_t n_part) {
      for (std::int64_t begin = 0; begin < n_part; begin += factor_rows) {
        check_stop(stop_);
        const std::int64_t n = std::min(factor_rows, n_part - begin);
        for (std::size_t k = 0; k < p; ++k) prepare_factor(k, part_[k] + begin, first + begin, n);
        lhtree::multiply_columns(left_factor_.data(), right_factor_.data(),
                                 static_cast<std::int64_t>(p), padded(n), product_.data());
      }
    });
    const double all = weight_target_ + weight_rest_;
    for (std::size_t i = 0; i < p; ++i) product_[i * p + i] = drawn_[i].moments.filled_square(all);
  }

  /// Have a block of a drawn column as a factor of products: about its origin, in whole
  /// lanes, and weighted on the left. Most columns are so as they are.
  void prepare_factor(std::size_t k, const double* value, std::int64_t begin, std::int64_t n) {
    const double origin = drawn_[k].moments.origin;
    left_factor_[k] = right_factor_[k] = value;
    if (row_weight_.empty() && origin == 0.0) return;
    factor_.resize(drawn_.size() * 2 * factor_rows);
    double* right = factor_.data() + k * 2 * factor_rows;
    double* left = right + factor_rows;
    std::fill_n(right, 2 * factor_rows, 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
      right[i] = value[i] - origin;
      left[i] = row_weight_.empty() ? right[i] : row_weight_[begin + i] * right[i];
    }
    left_factor_[k] = left;
    right_factor_[k] = right;
  }

  /// Try the contrast over the columns drawn from number `begin` to `end`.
  void try_plane(std::size_t begin, std::size_t end, Bench& bench) {
    if (begin == end) return;
    order_columns(drawn_, begin, end, order_, columns_);
    const std::vector<double> strength =
        rules_.contrast == Contrast::fisher
            ? find_fisher_strength(columns_, order_, product_, drawn_.size(), weight_target_,
                                   weight_rest_)
            : find_strength(columns_, rules_);
    if (strength.empty() || !weigh_columns(columns_, rules_, strength, trial_.terms)) return;
    project_trial();
    try_trial(room_.score(), bench);
  }

  /// Project the columns drawn; the plane's columns and the terms are both ascending.
  void project_trial() {
    const Terms& terms = trial_.terms;
    place_.clear();
    std::size_t k = 0;
    for (const std::int32_t j : terms.feature) {
      while (columns_[k].feature != j) ++k;
      place_.push_back(order_[k]);
    }
    const FormView form{terms.feature.data(), terms.weight.data(), terms.size(), false};
    visit_parts(place_, [&](std::int64_t begin, std::int64_t n) {
      project_columns(part_.data(), n, form, room_.score() + begin);
    });
  }

  /// Cut the trial's projections; it becomes the node's split if it is purer.
  void try_trial(const double* score, Bench& bench) {
    check_stop(stop_);
    const double* weight = row_weight_.empty() ? nullptr : row_weight_.data();
    const std::int64_t n_targets = rows_.target.size;
    trial_.target = find_extremes(score, n_targets);
    trial_.rest = find_extremes(score + n_targets, rows_.rest.size);
    const double lowest = std::min(trial_.target.min, trial_.rest.min);
    const double highest = std::max(trial_.target.max, trial_.rest.max);
    if (lowest == highest) return;
    const Scores scores{score, weight, n_targets, rows_.size()};
    const double limit = is_first_ ? infinity : bench.split.threshold.impurity - same_impurity;
    const double least = rules_.min_samples_leaf;
    if (rules_.cut == Cut::gini) {
      trial_.threshold = cutter_.choose(scores, lowest, highest, limit, least);
    } else if (least > 0.0) {
      trial_.threshold = choose_pure(scores, trial_.target, trial_.rest, rules_.gamma, least);
    } else {
      trial_.threshold = choose_pure(
          count_outside(score, rows_.target, trial_.rest.min, trial_.rest.max),
          count_outside(score + n_targets, rows_.rest, trial_.target.min, trial_.target.max),
          trial_.target, trial_.rest, rules_.gamma);
    }
    if (trial_.threshold.rule == Rule::leaf) return;
    if (rules_.cut == Cut::purity || min_weight_ > 0.0) {
      const LeftSide left = sum_left(scores, trial_.threshold.value);
      const LeftSide whole{weight_target_, weight_target_ + weight_rest_};
      trial_.threshold.impurity = find_impurity(left, whole);
      if (left.all < min_weight_ || whole.all - left.all < min_weight_) return;
    }
    if (!(trial_.threshold.impurity < limit)) return;
    is_first_ = false;
    std::swap(trial_, bench.split);
    bench.divide(score, rows_.size());
  }

  Reader reader_;
  const double* weight_;
  const Rules& rules_;
  const StopFlag& stop_;
  ColumnRoom& room_;                  // values of the columns drawn, and projections of the trial
  std::vector<std::int32_t> column_;  // the tree's columns, ascending between draws
  std::vector<std::pair<std::size_t, std::size_t>> swaps_;
  NodeRows rows_{};
  PageVector<double> row_weight_;
  PresentValues present_;
  double weight_target_ = 0.0, weight_rest_ = 0.0;
  double min_weight_ = 0.0;  // least weight of a side of a split
  bool is_first_ = true;
  Split trial_;
  GiniCutter cutter_;
  std::vector<PlaneColumn> drawn_;    // the node's columns, in the order of their draw
  std::vector<PlaneColumn> columns_;  // those of the plane at hand, ascending
  std::vector<std::size_t> order_;    // their places among the drawn
  std::vector<std::size_t> place_;    // those of the plane's terms
  std::vector<const double*> part_;   // values of columns in a part of the rows
  std::vector<double> product_;
  std::vector<const double*> left_factor_, right_factor_;
  std::vector<double> factor_;
};

}  // namespace lhtree
