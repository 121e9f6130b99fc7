// Splits over all columns: the paper's rule, and its standardised form.
//
// The sums of a node's columns are handed from parent to child: the smaller child is
// summed, the larger one gets the parent's minus these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "contrast.hpp"
#include "node.hpp"
#include "projection_kernels.hpp"
#include "random.hpp"
#include "recall.hpp"
#include "score_cutter.hpp"
#include "statistics.hpp"

namespace lhtree {

template <class T>
class DenseSplitter {
 public:
  using State = std::unique_ptr<Moments>;  // sums of a mixed node

  DenseSplitter(const Table<T>& table, const double* weight, const Rules& rules,
                const StopFlag& stop)
      : all_rows_(table),
        all_weight_(weight),
        rules_(rules),
        stop_(stop),
        near_rows_(0, table),
        cutter_(rules),
        recall_(table.lengths) {
    leave_near();
  }

  const double* weight() const { return weight_; }

  State begin(const NodeRows& rows, std::uint64_t key) {
    State moments = take_moments();
    moments->anchor.clear();
    fix_columns(key, rules_.n_columns_per_tree, table_->n_columns, moments->is_fixed);
    sum_exactly(*table_, rows, *moments, stop_);
    return moments;
  }

  /// Once a node's rows fit into a fast cache they are copied side by side, and its
  /// whole subtree, which is finished before any other node, works on the copy.
  void enter(const Pending<State>& node, std::uint32_t* row, std::size_t level) {
    constexpr std::int64_t near_bytes = 1 << 19;  // half of a common second-level cache
    if (is_near_ && level < near_level_) leave_near();
    const std::int64_t n = node.end - node.begin;
    const std::int64_t n_bytes = n * all_rows_.width * static_cast<std::int64_t>(sizeof(T));
    if (!is_near_ && node.state && n_bytes <= near_bytes) enter_near(row + node.begin, n, level);
  }

  bool choose(const NodeRows& rows, State& moments, std::uint64_t, double min_weight,
              Split& split) {
    settle(*table_, rows, *moments, stop_);
    columns_.clear();
    columns_.reserve(table_->n_columns);
    for (std::int64_t j = 0; j < table_->n_columns; ++j) {
      if (moments->is_fixed[j]) continue;
      const ColumnMoments column = moments->column(j);
      if (column.variance() > rules_.alpha)
        columns_.push_back({static_cast<std::int32_t>(j), column});
    }
    if (!weigh_columns(columns_, rules_, find_strength(columns_, rules_), split.terms))
      return false;
    split.score.resize(rows.size());
    const bool is_guessed = guess(rows, *moments, split);
    if (!is_guessed) project_all(rows, *moments, split);
    if (!cutter_.cut(rows, min_weight, split)) return false;
    if (is_guessed && split.threshold.rule == Rule::middle) {
      recall_.list_divided(split);
      project_unsure(rows, split);
    }
    return true;
  }

  /// Give the mixed children their sums, as long as rounding stays bounded.
  void divide(State& parent, const NodeRows& large, State& larger, const NodeRows& small,
              State& smaller) {
    const bool is_exact = !(parent->has_missing() && weight_);
    const bool subtracts = is_exact && large.is_mixed() && 2 * large.size() > parent->n_exact;
    if (subtracts || small.is_mixed()) smaller = sum_child(*parent, small);
    if (subtracts) {
      subtract(*parent, *smaller, large);
      larger = std::move(parent);
    } else if (large.is_mixed()) {
      larger = sum_child(*parent, large);
    }
    if (smaller && !small.is_mixed()) release(smaller);
  }

  void release(State& moments) {
    if (moments) spare_.push_back(std::move(moments));
  }

  /// Call visit(column, moments) for every column that varies in a leaf.
  template <class Visit>
  void visit_columns(const NodeRows& rows, State& moments, const Visit& visit) {
    settle(*table_, rows, *moments, stop_);
    for (std::int64_t j = 0; j < table_->n_columns; ++j)
      if (!moments->is_fixed[j]) visit(j, moments->column(j));
  }

 private:
  void enter_near(std::uint32_t* row, std::int64_t n, std::size_t level) {
    if (near_rows_.n_rows < n) near_rows_ = Table<T>(n, all_rows_);
    if (all_weight_) near_weight_.resize(n);
    for (std::int64_t i = 0; i < n; ++i) {
      near_rows_.assign(i, all_rows_.row(row[i]));
      if (all_weight_) near_weight_[i] = all_weight_[row[i]];
    }
    if (recall_.is_active()) recall_.enter_near(row, n);
    std::iota(row, row + n, 0);
    is_near_ = true;
    near_level_ = level;
    table_ = &near_rows_;
    weight_ = all_weight_ ? near_weight_.data() : nullptr;
  }

  void leave_near() {
    recall_.leave_near();
    is_near_ = false;
    table_ = &all_rows_;
    weight_ = all_weight_;
  }

  State take_moments() {
    if (spare_.empty()) return std::make_unique<Moments>(all_rows_.width, all_rows_.has_missing);
    State moments = std::move(spare_.back());
    spare_.pop_back();
    return moments;
  }

  State sum_child(const Moments& parent, const NodeRows& rows) {
    State moments = take_moments();
    moments->origin = parent.origin;
    moments->is_fixed = parent.is_fixed;
    moments->anchor = parent.anchor;
    sum_exactly(*table_, rows, *moments, stop_);
    return moments;
  }

  FormView view(const Terms& terms) const {
    const bool is_dense = terms.size() == table_->n_columns;
    return {is_dense ? nullptr : terms.feature.data(), terms.weight.data(), terms.size(), false,
            table_->has_missing ? terms.center.data() : nullptr};
  }

  /// Fill the scores from what is known of the rows, if most of them are sure.
  bool guess(const NodeRows& rows, const Moments& moments, Split& split) {
    if (moments.anchor.empty() || !recall_.guess(rows, moments.anchor, split)) return false;
    project_unsure(rows, split);
    return true;
  }

  void project_all(const NodeRows& rows, Moments& moments, Split& split) {
    project_part(rows.target, split.terms, split.score.data());
    project_part(rows.rest, split.terms, split.score.data() + rows.target.size);
    if (recall_.is_active()) recall_.keep(rows, split, moments.anchor);
  }

  void project_part(RowSet rows, const Terms& terms, double* score) {
    const FormView form = view(terms);
    const Place place = is_near_ ? Place::cached : Place::scattered;
    const T* row[piece];
    for (std::int64_t begin = 0; begin < rows.size; begin += piece) {
      if (begin % (16 * piece) == 0) check_stop(stop_);
      const std::int64_t n = std::min(piece, rows.size - begin);
      for (std::int64_t i = 0; i < n; ++i) row[i] = table_->row(rows.row[begin + i]);
      project(row, n, form, place, score + begin);
    }
  }

  /// Project the rows whose guess does not do.
  void project_unsure(const NodeRows& rows, Split& split) {
    const FormView form = view(split.terms);
    const std::uint32_t* place = recall_.unsure();
    const T* row[piece];
    double score[piece];
    for (std::int64_t begin = 0; begin < recall_.n_unsure(); begin += piece) {
      const std::int64_t n = std::min(piece, recall_.n_unsure() - begin);
      for (std::int64_t i = 0; i < n; ++i)
        row[i] = table_->row(rows.target.row[place[begin + i]]);  // the rest follows the targets
      project(row, n, form, Place::scattered, score);
      for (std::int64_t i = 0; i < n; ++i) split.score[place[begin + i]] = score[i];
    }
  }

  static constexpr std::int64_t piece = 256;  // rows that are projected in one go

  const Table<T>& all_rows_;
  const double* all_weight_;  // [n_rows of the table] or null
  const Rules& rules_;
  const StopFlag& stop_;
  Table<T> near_rows_;
  std::vector<double> near_weight_;
  bool is_near_ = false;
  std::size_t near_level_ = 0;       // height of the stack below the subtree that works on the copy
  const Table<T>* table_ = nullptr;  // where the rows of the node at hand are
  const double* weight_ = nullptr;
  ScoreCutter cutter_;
  Recall recall_;
  std::vector<PlaneColumn> columns_;
  std::vector<State> spare_;
};

}  // namespace lhtree
