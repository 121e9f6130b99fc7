// Splits from several candidates over few random columns, the best by Gini.
//
// Only the columns that a candidate draws are read. They are gathered side by side,
// so the table is kept column by column.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "contrast.hpp"
#include "node.hpp"
#include "random.hpp"
#include "statistics.hpp"
#include "threshold.hpp"

namespace lhtree {

/// A table by columns.
template <class T>
struct ColumnTable {
  const T* values;
  std::int64_t n_rows;
  std::int64_t n_columns;
  const T* column(std::int64_t j) const { return values + j * n_rows; }
};

template <class T>
class SampledSplitter {
 public:
  struct State {};  // nothing is handed from parent to child

  SampledSplitter(const ColumnTable<T>& table, const double* weight, const Rules& rules,
                  const StopFlag& stop)
      : table_(table), weight_(weight), rules_(rules), stop_(stop), column_(table.n_columns) {
    std::iota(column_.begin(), column_.end(), 0);
  }

  const double* weight() const { return weight_; }

  State begin(const NodeRows&, std::uint64_t key) {
    const std::int64_t n_kept = rules_.n_columns_per_tree;
    if (n_kept > 0 && n_kept < table_.n_columns) {
      shuffle_columns(key, column_);
      column_.resize(n_kept);
      std::sort(column_.begin(), column_.end());
    }
    return {};
  }

  void enter(const Pending<State>&, std::uint32_t*, std::size_t) {}
  void divide(State&, const NodeRows&, State&, const NodeRows&, State&) {}
  void release(State&) {}

  bool choose(const NodeRows& rows, State&, std::uint64_t key, double min_weight, Split& best) {
    start_node(rows);
    min_weight_ = min_weight;
    is_first_ = true;
    if (rules_.n_axes > 0) try_axes(hash64(key, ~std::uint64_t{2}), best);
    for (std::int64_t c = 0; c < rules_.n_planes; ++c)
      try_plane(hash64(key, ~static_cast<std::uint64_t>(3 + c)), best);
    return !is_first_;
  }

  /// Call visit(column, moments) for every column that varies in a leaf.
  template <class Visit>
  void visit_columns(const NodeRows& rows, State&, const Visit& visit) {
    start_node(rows);
    buffer_.resize(1);
    for (const std::int32_t j : column_) {
      ColumnMoments moments;
      if (read_column(j, buffer_[0], moments)) visit(j, moments);
    }
  }

 private:
  void start_node(const NodeRows& rows) {
    check_stop(stop_);
    rows_ = rows;
    gather_weight(rows, row_weight_);
    weight_target_ = sum_weight(rows.target);
    weight_rest_ = sum_weight(rows.rest);
  }

  /// Yields the tree's columns in random order, as long as `take(column)` returns true.
  template <class Take>
  void draw_columns(std::uint64_t key, const Take& take) {
    const auto m = static_cast<std::uint64_t>(column_.size());
    swaps_.clear();
    for (std::uint64_t i = 0; i < m; ++i) {
      const std::uint64_t j = i + hash64(key, i) % (m - i);
      std::swap(column_[i], column_[j]);
      swaps_.push_back({i, j});
      if (!take(column_[i])) break;
    }
    // Undone in reverse, so that every draw starts from the same order.
    for (auto swap = swaps_.rbegin(); swap != swaps_.rend(); ++swap)
      std::swap(column_[swap->first], column_[swap->second]);
  }

  /// Gather a column of the node's rows and sum it; false if it is constant there.
  bool read_column(std::int64_t j, std::vector<double>& values, ColumnMoments& moments) {
    const T* column = table_.column(j);
    values.resize(rows_.size());
    double* value = values.data();
    for (const RowSet& part : {rows_.target, rows_.rest})
      for (std::int64_t i = 0; i < part.size; ++i) *value++ = column[part.row[i]];
    moments = sum_values(values, 0.0);
    const double scale = moments.square / moments.weight();
    if (moments.variance() > smallest_ratio * scale) return true;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    if (*low == *high) return false;
    moments = sum_values(values, *low);  // far from zero for its spread
    return true;
  }

  ColumnMoments sum_values(const std::vector<double>& values, double origin) const {
    const std::int64_t n_targets = rows_.target.size;
    const double* weight = row_weight_.empty() ? nullptr : row_weight_.data();
    double square = 0.0;
    const double target = add_values(values.data(), weight, n_targets, origin, square);
    const double rest =
        add_values(values.data() + n_targets, weight ? weight + n_targets : nullptr,
                   rows_.rest.size, origin, square);
    return {weight_target_, weight_rest_, origin, target, rest, square};
  }

  void try_axes(std::uint64_t key, Split& best) {
    std::int64_t n_found = 0;
    buffer_.resize(1);
    draw_columns(key, [&](std::int32_t j) {
      ColumnMoments moments;
      if (!read_column(j, buffer_[0], moments) || !(moments.variance() > rules_.alpha))
        return true;
      trial_.terms.clear();
      trial_.terms.add(j, 1.0, moments.mean(), moments.variance());
      trial_.score = buffer_[0];
      try_trial(best);
      return ++n_found < rules_.n_axes;
    });
  }

  void try_plane(std::uint64_t key, Split& best) {
    const auto m = static_cast<std::int64_t>(column_.size());
    const std::int64_t n_wanted = rules_.n_columns > 0 ? std::min(rules_.n_columns, m) : m;
    columns_.clear();
    const auto take = [&](std::int32_t j) {
      if (columns_.size() == buffer_.size()) buffer_.emplace_back();
      ColumnMoments moments;
      if (read_column(j, buffer_[columns_.size()], moments) && is_usable(moments, rules_))
        columns_.push_back({j, moments});
      return static_cast<std::int64_t>(columns_.size()) < n_wanted;
    };
    if (n_wanted < m)
      draw_columns(key, take);
    else
      for (const std::int32_t j : column_) take(j);
    if (columns_.empty()) return;
    sort_columns();
    const std::vector<double> strength = rules_.contrast == Contrast::fisher
                                             ? find_fisher_strength()
                                             : find_strength(columns_, rules_);
    if (strength.empty() || !weigh_columns(columns_, rules_, strength, trial_.terms)) return;
    project_trial();
    try_trial(best);
  }

  void sort_columns() {
    order_.resize(columns_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return columns_[a].feature < columns_[b].feature;
    });
    sorted_.clear();
    plane_.clear();
    for (const std::size_t k : order_) {
      sorted_.push_back(columns_[k]);
      plane_.push_back(buffer_[k].data());
    }
    columns_.swap(sorted_);
  }

  std::vector<double> find_fisher_strength() {
    const std::size_t p = columns_.size();
    product_.assign(p * p, 0.0);
    const double* weight = row_weight_.empty() ? nullptr : row_weight_.data();
    for (std::size_t i = 0; i < p; ++i)
      for (std::size_t j = 0; j < i; ++j)
        product_[i * p + j] = multiply_values(plane_[i], columns_[i].moments.origin, plane_[j],
                                              columns_[j].moments.origin, weight, rows_.size());
    for (std::size_t i = 0; i < p; ++i) product_[i * p + i] = columns_[i].moments.square;
    return find_fisher(columns_, product_);
  }

  /// Project the gathered columns; `plane_` and the terms are both ascending.
  void project_trial() {
    std::vector<const double*>& column = term_column_;
    column.clear();
    std::size_t k = 0;
    for (const std::int32_t j : trial_.terms.feature) {
      while (columns_[k].feature != j) ++k;
      column.push_back(plane_[k]);
    }
    trial_.score.resize(rows_.size());
    const FormView form{trial_.terms.feature.data(), trial_.terms.weight.data(),
                        trial_.terms.size(), false};
    project_columns(column.data(), rows_.size(), form, trial_.score.data());
  }

  /// Cut the trial's projections; it becomes the best if it is purer.
  void try_trial(Split& best) {
    const double* score = trial_.score.data();
    const double* weight = row_weight_.empty() ? nullptr : row_weight_.data();
    const std::int64_t n_targets = rows_.target.size;
    trial_.target = find_extremes(score, n_targets);
    trial_.rest = find_extremes(score + n_targets, rows_.rest.size);
    const double lowest = std::min(trial_.target.min, trial_.rest.min);
    const double highest = std::max(trial_.target.max, trial_.rest.max);
    if (lowest == highest) return;
    const Scores scores{score, weight, n_targets, rows_.size()};
    if (rules_.cut == Cut::gini) {
      trial_.threshold = cutter_.choose(scores, lowest, highest);
    } else {
      trial_.threshold = choose_pure(
          count_outside(score, rows_.target, trial_.rest.min, trial_.rest.max),
          count_outside(score + n_targets, rows_.rest, trial_.target.min, trial_.target.max),
          trial_.target, trial_.rest, rules_.gamma);
    }
    const LeftSide whole{weight_target_, weight_target_ + weight_rest_};
    if (rules_.cut == Cut::purity || min_weight_ > 0.0) {
      const LeftSide left = sum_left(scores, trial_.threshold.value);
      trial_.threshold.impurity = find_impurity(left, whole);
      if (left.all < min_weight_ || whole.all - left.all < min_weight_) return;
    }
    if (!is_first_ && !(trial_.threshold.impurity < best.threshold.impurity - same_impurity))
      return;
    is_first_ = false;
    std::swap(trial_, best);
  }

  const ColumnTable<T>& table_;
  const double* weight_;
  const Rules& rules_;
  const StopFlag& stop_;
  std::vector<std::int32_t> column_;  // the tree's columns, ascending between draws
  std::vector<std::pair<std::uint64_t, std::uint64_t>> swaps_;
  NodeRows rows_{};
  std::vector<double> row_weight_;
  double weight_target_ = 0.0, weight_rest_ = 0.0;
  double min_weight_ = 0.0;  // least weight of a side of a split
  bool is_first_ = true;
  Split trial_;
  GiniCutter cutter_;
  std::vector<std::vector<double>> buffer_;  // gathered columns, in the order of their draw
  std::vector<PlaneColumn> columns_, sorted_;
  std::vector<std::size_t> order_;
  std::vector<const double*> plane_, term_column_;
  std::vector<double> product_;
};

}  // namespace lhtree
