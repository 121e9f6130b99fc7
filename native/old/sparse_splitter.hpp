// Splits over all columns of a sparse table: the rules of dense_splitter.hpp.
//
// Sums go over the values that are not zero. A column with some of them, but not in all
// rows of a node, varies there; one with none is constant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "contrast.hpp"
#include "score_cutter.hpp"
#include "score_kernels.hpp"
#include "sparse.hpp"
#include "statistics.hpp"
#include "sum_kernels.hpp"

namespace lhtree {

/// The sums of all columns about zero, and in how many rows each is not zero.
struct SparseMoments {
  std::int64_t n_exact = 0;  // rows of the last exact sum, from which this one descends
  std::vector<double> sum_target, sum_rest, square, scale;  // [n_columns] as in Moments
  std::vector<std::int64_t> count;                          // [n_columns]
  std::vector<std::uint8_t> is_fixed;                       // [n_columns]

  explicit SparseMoments(std::int64_t n_columns)
      : sum_target(n_columns),
        sum_rest(n_columns),
        square(n_columns),
        scale(n_columns),
        count(n_columns),
        is_fixed(n_columns) {}
};

class SparseSplitter {
 public:
  using State = std::unique_ptr<SparseMoments>;

  SparseSplitter(const SparseTable& table, const double* weight, const Rules& rules,
                 const StopFlag& stop)
      : table_(table),
        weight_(weight),
        rules_(rules),
        stop_(stop),
        reader_(table),
        cutter_(rules),
        column_weight_(table.n_columns, 0.0) {}

  const double* weight() const { return weight_; }

  State begin(const NodeRows& rows, std::uint64_t key) {
    State moments = take_moments();
    fix_columns(key, rules_.n_columns_per_tree, table_.n_columns, moments->is_fixed);
    sum_exactly(rows, *moments);
    return moments;
  }

  void enter(const Pending<State>&, std::uint32_t*, std::size_t) {}

  bool choose(const NodeRows& rows, State& moments, std::uint64_t, double min_weight,
              Bench& bench) {
    Split& split = bench.split;
    columns_.clear();
    visit_columns(rows, moments, [&](std::int64_t j, const ColumnMoments& column) {
      if (column.variance() > rules_.alpha)
        columns_.push_back({static_cast<std::int32_t>(j), column});
    });
    if (!weigh_columns(columns_, rules_, find_strength(columns_, rules_), split.terms))
      return false;
    project(rows, split);
    if (!cutter_.cut(rows, min_weight, split)) return false;
    bench.divide(bench.split.score.data(), rows.size());
    return true;
  }

  /// Give the mixed children their sums, as long as rounding stays bounded.
  void divide(State& parent, const NodeRows& large, State& larger, const NodeRows& small,
              State& smaller) {
    const bool subtracts = large.is_mixed() && 2 * large.size() > parent->n_exact;
    if (subtracts || small.is_mixed()) smaller = sum_child(*parent, small);
    if (subtracts) {
      subtract(*parent, *smaller);
      larger = std::move(parent);
    } else if (large.is_mixed()) {
      larger = sum_child(*parent, large);
    }
    if (smaller && !small.is_mixed()) release(smaller);
  }

  void release(State& moments) {
    if (moments) spare_.push_back(std::move(moments));
  }

  /// Call visit(column, moments) for every column that varies in a node.
  template <class Visit>
  void visit_columns(const NodeRows& rows, State& moments, const Visit& visit) {
    check_stop(stop_);
    reader_.start(rows);
    weight_target_ = sum_weight(rows.target);
    weight_rest_ = sum_weight(rows.rest);
    for (std::int64_t j = 0; j < table_.n_columns; ++j) {
      if (moments->is_fixed[j]) continue;
      ColumnMoments column{weight_target_,         weight_rest_,         0.0,
                           moments->sum_target[j], moments->sum_rest[j], moments->square[j]};
      const bool is_sure =
          moments->count[j] > 0 && column.variance() > smallest_ratio * moments->scale[j];
      if (is_sure || sum_anew(rows, j, moments->count[j], column))
        visit(j, column);
      else
        moments->is_fixed[j] = 1;
    }
  }

 private:
  State take_moments() {
    if (spare_.empty()) return std::make_unique<SparseMoments>(table_.n_columns);
    State moments = std::move(spare_.back());
    spare_.pop_back();
    return moments;
  }

  State sum_child(const SparseMoments& parent, const NodeRows& rows) {
    State moments = take_moments();
    moments->is_fixed = parent.is_fixed;
    sum_exactly(rows, *moments);
    return moments;
  }

  void sum_exactly(const NodeRows& rows, SparseMoments& moments) {
    check_stop(stop_);
    for (auto* sums : {&moments.sum_target, &moments.sum_rest, &moments.square})
      std::fill(sums->begin(), sums->end(), 0.0);
    std::fill(moments.count.begin(), moments.count.end(), 0);
    add_rows(rows.target, moments.sum_target.data(), moments);
    add_rows(rows.rest, moments.sum_rest.data(), moments);
    moments.n_exact = rows.size();
    const double weight = sum_weight(rows.target) + sum_weight(rows.rest);
    for (std::size_t j = 0; j < moments.scale.size(); ++j)
      moments.scale[j] = moments.square[j] / weight;
  }

  void add_rows(RowSet rows, double* sum, SparseMoments& moments) const {
    for (std::int64_t i = 0; i < rows.size; ++i) {
      const std::uint32_t row = rows.row[i];
      const double weight = rows.weight ? rows.weight[row] : 1.0;
      for (std::int64_t k = table_.row_start[row]; k < table_.row_start[row + 1]; ++k) {
        const std::int32_t j = table_.row_column[k];
        const double x = table_.row_value[k], wx = weight * x;
        sum[j] += wx;
        moments.square[j] += wx * x;
        ++moments.count[j];
      }
    }
  }

  static void subtract(SparseMoments& whole, const SparseMoments& part) {
    for (std::size_t j = 0; j < whole.count.size(); ++j) {
      whole.sum_target[j] -= part.sum_target[j];
      whole.sum_rest[j] -= part.sum_rest[j];
      whole.square[j] -= part.square[j];
      whole.count[j] -= part.count[j];
    }
  }

  /// Sum a column whose variance is small against the numbers that it is the difference of,
  /// about its least value; false if it is constant.
  bool sum_anew(const NodeRows& rows, std::int64_t j, std::int64_t count, ColumnMoments& column) {
    if (count == 0) return false;
    value_.resize(rows.size());
    reader_.gather(j, value_.data());
    const Extremes extremes = find_extremes(value_.data(), rows.size());
    if (extremes.min == extremes.max) return false;
    gather_weight(rows, row_weight_);
    const double* weight = row_weight_.empty() ? nullptr : row_weight_.data();
    const std::int64_t n_targets = rows.target.size;
    column.origin = extremes.min;
    column.square = 0.0;
    column.sum_target = add_values(value_.data(), weight, n_targets, column.origin, column.square);
    column.sum_rest = add_values(value_.data() + n_targets, weight ? weight + n_targets : nullptr,
                                 rows.rest.size, column.origin, column.square);
    return true;
  }

  /// Project the rows of a node; values that are zero may be left out of the sums.
  void project(const NodeRows& rows, Split& split) {
    const Terms& terms = split.terms;
    for (std::int64_t k = 0; k < terms.size(); ++k)
      column_weight_[terms.feature[k]] = terms.weight[k];
    split.score.clear();
    for (const RowSet& part : {rows.target, rows.rest})
      for (std::int64_t i = 0; i < part.size; ++i) {
        Lanes sum = fill(0.0);
        const std::uint32_t row = part.row[i];
        for (std::int64_t k = table_.row_start[row]; k < table_.row_start[row + 1]; ++k) {
          const std::int32_t j = table_.row_column[k];
          sum.add(j % lane_count, column_weight_[j] * table_.row_value[k]);
        }
        split.score.push_back(combine(sum));
      }
    for (const std::int32_t j : terms.feature) column_weight_[j] = 0.0;
  }

  const SparseTable& table_;
  const double* weight_;
  const Rules& rules_;
  const StopFlag& stop_;
  SparseReader reader_;
  ScoreCutter cutter_;
  double weight_target_ = 0.0, weight_rest_ = 0.0;
  std::vector<double> column_weight_;  // [n_columns] of the split at hand; 0 between splits
  std::vector<double> value_;
  PageVector<double> row_weight_;
  std::vector<PlaneColumn> columns_;
  std::vector<State> spare_;
};

}  // namespace lhtree
