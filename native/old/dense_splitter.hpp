// Splits over all columns: the paper's rule, and its standardised form.
//
// The sums of a node's columns are handed from parent to child: the smaller child is
// summed, the larger one gets the parent's minus these; or both get those of the slices of a
// large parent. The roots of a member's trees share sums by class. Large nodes are projected
// by sweeps over the table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "class_sums.hpp"
#include "contrast.hpp"
#include "node.hpp"
#include "projection_kernels.hpp"
#include "random.hpp"
#include "recall.hpp"
#include "score_cutter.hpp"
#include "slices.hpp"
#include "statistics.hpp"
#include "sweep.hpp"

namespace lhtree {

/// What is known of a mixed node.
struct DenseNode {
  Moments moments;
  std::vector<double> anchor;      // weights on which its projections are known; see recall.hpp
  std::unique_ptr<Slices> slices;  // of a large node, by these projections
};

template <class T>
class DenseSplitter {
 public:
  using State = std::unique_ptr<DenseNode>;
  using Sweep = lhtree::Sweep<T>;

  DenseSplitter(const Table<T>& table, const double* weight, const Rules& rules,
                const StopFlag& stop)
      : all_rows_(table),
        all_weight_(weight),
        rules_(rules),
        stop_(stop),
        n_near_(count_near(table)),
        near_rows_(table.n_columns, table.has_missing),
        cutter_(rules),
        recall_(table.lengths) {
    leave_near();
  }

  const double* weight() const { return weight_; }

  /// Whether projections of the rows are kept.
  bool remembers() const { return recall_.is_active(); }

  /// Have the root's sums from those of the classes of its rows.
  void start_from(std::shared_ptr<const ClassSums> sums, std::int32_t target) {
    class_sums_ = std::move(sums);
    target_ = target;
  }

  State begin(const NodeRows& rows, std::uint64_t key) {
    State node = take_node();
    Moments& moments = node->moments;
    fix_columns(key, rules_.n_columns_per_tree, table_->n_columns, moments.is_fixed);
    if (class_sums_) {
      class_sums_->sum_root(rows, target_, moments);
      class_sums_.reset();
    } else {
      sum_exactly(*table_, rows, moments, stop_);
    }
    return node;
  }

  /// Once a node's rows fit into a fast cache they are copied side by side, and its
  /// whole subtree, which is finished before any other node, works on the copy.
  void enter(const Pending<State>& node, std::uint32_t* row, std::size_t level) {
    if (is_near_ && level < near_level_) leave_near();
    const std::int64_t n = node.end - node.begin;
    if (!is_near_ && node.state && n <= n_near_) enter_near(row + node.begin, n, level);
  }

  /// Whether the node's rows had better be projected by a sweep.
  bool is_large(const NodeRows& rows) const {
    return !weight_ && rows.is_mixed() && lhtree::is_large(all_rows_, rows.size());
  }

  /// Have a large node projected by a sweep; false if what is known of its rows will do.
  bool join(const NodeRows& rows, State& node, Sweep& sweep) {
    if (!weigh_node(rows, *node, terms_) || recall_.can_guess(terms_, node->anchor)) return false;
    const double middle_score = recall_.start(terms_, node->anchor);
    node->slices = make_slices(rows, *node, middle_score);
    sweep.add(
        {rows.target, true, node->anchor.data(), middle_score, rows.known, node->slices.get()});
    sweep.add({rows.rest, false, node->anchor.data(), middle_score, rows.known + rows.target.size,
               node->slices.get()});
    return true;
  }

  /// The sweep that the node joined is over.
  void finish_sweep(const NodeRows& rows, State& node) {
    if (node->slices) node->slices->sum_all(rows, node->moments);
  }

  bool choose(const NodeRows& rows, State& node, std::uint64_t, double min_weight, Bench& bench) {
    if (!weigh_node(rows, *node, bench.split.terms)) return false;
    if (recall_.is_active() && rows.size() > most_scores &&
        !recall_.can_guess(bench.split.terms, node->anchor))
      remember_all(rows, *node, bench.split.terms);
    if (recall_.guess(rows, node->anchor, bench)) return cut_guessed(rows, min_weight, bench);
    project_all(rows, *node, bench.split);
    if (!cutter_.cut(rows, min_weight, bench.split)) return false;
    bench.divide(bench.split.score.data(), rows.size());
    return true;
  }

  /// Give the mixed children their sums, as long as rounding stays bounded.
  void divide(State& parent, const NodeRows& large, State& larger, const NodeRows& small,
              State& smaller) {
    if (parent->slices && divide_slices(*parent, large, larger, small, smaller)) return;
    const Moments& moments = parent->moments;
    const bool is_exact = !(moments.has_missing() && weight_);
    const bool subtracts = is_exact && large.is_mixed() && 2 * large.size() > moments.n_exact;
    if (subtracts || small.is_mixed()) smaller = sum_child(*parent, small);
    if (subtracts) {
      take_out(*parent, *smaller, small, large);
      larger = std::move(parent);
    } else if (large.is_mixed()) {
      larger = sum_child(*parent, large);
    }
    if (smaller && !small.is_mixed()) release(smaller);
  }

  void release(State& node) {
    if (!node) return;
    node->slices.reset();
    spare_.push_back(std::move(node));
  }

  /// Call visit(column, moments) for every column that varies in a leaf.
  template <class Visit>
  void visit_columns(const NodeRows& rows, State& node, const Visit& visit) {
    Moments& moments = node->moments;
    settle_node(rows, *node);
    for (std::int64_t j = 0; j < table_->n_columns; ++j)
      if (!moments.is_fixed[j]) visit(j, moments.column(j));
  }

 private:
  static std::int64_t count_near(const Table<T>& table) {
    constexpr std::int64_t small_table = 1 << 24;  // stays in a common last cache, as fast
    constexpr std::int64_t near_bytes = 1 << 19;   // half of a common second-level cache
    const std::int64_t row_bytes = table.width * static_cast<std::int64_t>(sizeof(T));
    return table.n_rows * row_bytes < small_table ? 0 : near_bytes / row_bytes;
  }

  void enter_near(std::uint32_t* row, std::int64_t n, std::size_t level) {
    near_rows_.make_room(n);
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

  State take_node() {
    if (spare_.empty())
      return std::make_unique<DenseNode>(
          DenseNode{Moments(all_rows_.width, all_rows_.has_missing), {}, nullptr});
    State node = std::move(spare_.back());
    spare_.pop_back();
    return node;
  }

  /// Make the sums fit to be used. Slices lack the digits for which rows were summed anew.
  void settle_node(const NodeRows& rows, DenseNode& node) {
    if (settle(*table_, rows, node.moments, stop_)) node.slices.reset();
  }

  /// Fill the terms of the node's split; false if it has none.
  bool weigh_node(const NodeRows& rows, DenseNode& node, Terms& terms) {
    settle_node(rows, node);
    columns_.clear();
    columns_.reserve(table_->n_columns);
    for (std::int64_t j = 0; j < table_->n_columns; ++j) {
      if (node.moments.is_fixed[j]) continue;
      const ColumnMoments column = node.moments.column(j);
      if (column.variance() > rules_.alpha)
        columns_.push_back({static_cast<std::int32_t>(j), column});
    }
    return weigh_columns(columns_, rules_, find_strength(columns_, rules_), terms);
  }

  /// A child without sums.
  State take_child(const DenseNode& parent) {
    State node = take_node();
    node->moments.origin = parent.moments.origin;
    node->moments.is_fixed = parent.moments.is_fixed;
    node->anchor = parent.anchor;
    return node;
  }

  State sum_child(const DenseNode& parent, const NodeRows& rows) {
    State node = take_child(parent);
    sum_exactly(*table_, rows, node->moments, stop_);
    return node;
  }

  /// Whether the smaller child is so small that its rows had better be read.
  static bool is_piece(const NodeRows& small, const NodeRows& large) {
    return small.size() < large.size() / 16;
  }

  /// Give the children their sums from slices; false if these do not fit the split.
  bool divide_slices(const DenseNode& parent, const NodeRows& large, State& larger,
                     const NodeRows& small, State& smaller) {
    if (is_piece(small, large)) return false;
    smaller = take_child(parent);
    larger = take_child(parent);
    const bool fits =
        parent.slices->divide(*table_, small, large, smaller->moments, larger->moments, stop_);
    // Digits that rounding took from the whole are missing in its parts, too.
    smaller->moments.scale = larger->moments.scale = parent.moments.scale;
    n_used_ += fits;
    if (!fits || !small.is_mixed()) release(smaller);
    if (!fits || !large.is_mixed()) release(larger);
    return fits;
  }

  /// Take the smaller child out of what is known of the parent: the larger one stays.
  void take_out(DenseNode& parent, const DenseNode& smaller, const NodeRows& small,
                const NodeRows& large) {
    subtract(parent.moments, smaller.moments, large);
    if (!parent.slices) return;
    if (is_piece(small, large))
      parent.slices->remove(*table_, small, stop_);
    else
      parent.slices.reset();
  }

  FormView view(const Terms& terms) const {
    const bool is_dense = terms.size() == table_->n_columns;
    return {is_dense ? nullptr : terms.feature.data(), terms.weight.data(), terms.size(), false,
            table_->has_missing ? terms.center.data() : nullptr};
  }

  /// Cut a node whose projections are guessed. Those that are not sure decide: the others lie
  /// between the extremes of both classes.
  bool cut_guessed(const NodeRows& rows, double min_weight, Bench& bench) {
    Split& split = bench.split;
    if (!cutter_.cut(project_listed(rows, bench), min_weight, split)) return false;
    const Rule rule = split.threshold.rule;
    bench.is_left.resize(rows.size());
    if (rule == Rule::middle) {
      recall_.divide(rows, bench);
      project_listed(rows, bench);
    } else {
      std::fill(bench.is_left.begin(), bench.is_left.end(), rule == Rule::n2 || rule == Rule::n4);
    }
    for (std::int64_t k = 0; k < bench.n_listed; ++k)
      bench.is_left[bench.number[k]] = split.score[k] < split.threshold.value;
    return true;
  }

  /// Know the projections on the weights of the split, and keep no others: for nodes whose exact
  /// projections would take much memory.
  void remember_all(const NodeRows& rows, DenseNode& node, const Terms& terms) {
    const FormView form = view(terms);
    const double middle_score = start_known(node, terms);
    double score[piece];
    for (std::int64_t begin = 0; begin < rows.size(); begin += piece) {
      const std::int64_t n = std::min(piece, rows.size() - begin);
      project_part({rows.target.row + begin, n, nullptr}, form, score);  // the rest follows
      keep_known(score, n, middle_score, rows.known + begin);
    }
  }

  void project_all(const NodeRows& rows, DenseNode& node, Split& split) {
    const FormView form = view(split.terms);
    split.score.resize(rows.size());
    double* score = split.score.data();
    project_part(rows.target, form, score);
    project_part(rows.rest, form, score + rows.target.size);
    if (!recall_.is_active()) return;
    keep_known(score, rows.size(), start_known(node, split.terms), rows.known);
  }

  /// From now on projections on these weights are known; returns what is taken off them.
  double start_known(DenseNode& node, const Terms& terms) {
    node.slices.reset();  // they were laid by what was known so far
    return recall_.start(terms, node.anchor);
  }

  static void keep_known(const double* score, std::int64_t n, double middle_score, float* known) {
    for (std::int64_t i = 0; i < n; ++i) known[i] = remember(score[i] - middle_score);
  }

  void project_part(RowSet rows, const FormView& form, double* score) {
    const Place place = is_near_ ? Place::cached : Place::scattered;
    const T* row[piece];
    for (std::int64_t begin = 0; begin < rows.size; begin += piece) {
      if (begin % (16 * piece) == 0) check_stop(stop_);
      const std::int64_t n = std::min(piece, rows.size - begin);
      for (std::int64_t i = 0; i < n; ++i) row[i] = table_->row(rows.row[begin + i]);
      project(row, n, form, place, score + begin);
    }
  }

  /// Project the rows that are listed on the bench; returns them.
  NodeRows project_listed(const NodeRows& rows, Bench& bench) {
    const std::uint32_t *place = bench.number.data(), *end = place + bench.n_listed;
    listed_.resize(bench.n_listed);
    for (std::int64_t k = 0; k < bench.n_listed; ++k)
      listed_[k] = rows.target.row[place[k]];  // the rest follows the targets
    const std::int64_t n_targets = std::lower_bound(place, end, rows.target.size) - place;
    const RowSet target{listed_.data(), n_targets, rows.target.weight};
    const RowSet rest{listed_.data() + n_targets, bench.n_listed - n_targets, rows.rest.weight};
    const FormView form = view(bench.split.terms);
    bench.split.score.resize(bench.n_listed);
    project_part(target, form, bench.split.score.data());
    project_part(rest, form, bench.split.score.data() + n_targets);
    return {target, rest};
  }

  /// Slices of a node across its weights, from a sample of its rows. Trees with too many slices
  /// that fit no split do without: they were for nothing.
  std::unique_ptr<Slices> make_slices(const NodeRows& rows, const DenseNode& node,
                                      double middle_score) {
    if (n_laid_ >= 2 + 2 * n_used_) return nullptr;
    ++n_laid_;
    const T* row[piece];
    double score[piece];
    for (std::int64_t i = 0; i < piece; ++i)
      row[i] = table_->row(rows.target.row[i * rows.size() / piece]);
    project(row, piece, {nullptr, node.anchor.data(), table_->n_columns, true}, Place::scattered,
            score);
    std::vector<float> sample(piece);
    for (std::int64_t i = 0; i < piece; ++i) sample[i] = remember(score[i] - middle_score);
    return std::make_unique<Slices>(sample, node.moments.origin);
  }

  static constexpr std::int64_t piece = 256;         // rows that are projected in one go
  static constexpr std::int64_t most_scores = 4096;  // that are kept if it can be helped

  const Table<T>& all_rows_;
  const double* all_weight_;  // [n_rows of the table] or null
  const Rules& rules_;
  const StopFlag& stop_;
  std::int64_t n_near_;  // rows of the largest node that is copied
  Table<T> near_rows_;
  std::vector<double> near_weight_;
  bool is_near_ = false;
  std::size_t near_level_ = 0;       // height of the stack below the subtree that works on the copy
  const Table<T>* table_ = nullptr;  // where the rows of the node at hand are
  const double* weight_ = nullptr;
  ScoreCutter cutter_;
  Recall recall_;
  std::int64_t n_laid_ = 0, n_used_ = 0;         // slices
  std::shared_ptr<const ClassSums> class_sums_;  // until the root has its sums
  std::int32_t target_ = 0;
  std::vector<PlaneColumn> columns_;
  Terms terms_;                       // of a node that joins a sweep
  PageVector<std::uint32_t> listed_;  // rows
  std::vector<State> spare_;
};

}  // namespace lhtree
