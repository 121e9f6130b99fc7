// Trees of forests: each of rows of its own, grown by the targets themselves.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/table.hpp"
#include "base/wide.hpp"
#include "grow/leaf_bounds.hpp"
#include "grow/losses.hpp"
#include "grow/tree.hpp"
#include "old/pages.hpp"
#include "old/random.hpp"
#include "old/stop.hpp"
#include "split/columns.hpp"
#include "split/hyperplanes.hpp"

namespace lhtree::grow {

/// Which trees to grow, and how. Weights are in units of row weights.
struct AveragedPlan {
  std::uint64_t seed = 0;
  std::int64_t first_estimator = 0, n_estimators = 1;
  std::uint32_t n_draws = 0;
  bool bootstrap = false;
  std::int64_t n_classes = 0;     // 0: targets are numbers
  bool balance = false;           // classes weigh alike among the rows of an estimator
  std::int64_t max_features = 0;  // columns that a node draws; 0: all
  std::int64_t max_features_per_tree = 0;  // and that a tree draws for its nodes
  bool axis_splits = true;
  split::HyperplaneSettings hyperplanes;
  std::int64_t hyperplane_interval = 1;  // estimators from one that has hyperplanes to the next
  double term_price = 0.0;  // of each term of a hyperplane but one, in units of the node's noise
  std::int64_t max_depth = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_leaf_nodes = 0;  // 0: no limit
  std::int64_t min_split_weight = 2, min_weight = 1;
  double min_fraction = 0.0;  // of the weight of a tree's rows, on a side of a split
  double ccp_alpha = 0.0;     // gain per leaf that a subtree needs, in units of gradients
  split::Constraints constraints;

  /// Trees of an estimator: one for each class, but for two classes that of the second.
  std::int64_t n_trees() const { return n_classes > 2 ? n_classes : 1; }
  std::int64_t positive_class(std::int64_t tree) const { return n_classes == 2 ? 1 : tree; }
};

/// Columns that nodes of a tree have seen to be constant: so they are in all nodes below.
class ConstantColumns {
 public:
  explicit ConstantColumns(std::int64_t n_columns)
      : n_words_(n_columns <= most_columns ? (n_columns + 63) / 64 : 0) {}

  void clear() { word_.clear(); }
  /// Make room for a node that has the columns of the one above it, or none; returns where.
  std::int64_t inherit(std::int64_t above) {
    const auto first = static_cast<std::int64_t>(word_.size());
    word_.resize(first + n_words_, 0);
    if (above >= 0) std::copy_n(word_.begin() + above, n_words_, word_.begin() + first);
    return first;
  }
  template <class Sums>
  bool contains(const Node<Sums>& node, std::int32_t j) const {
    return n_words_ > 0 && word_[node.constant + (j >> 6)] >> (j & 63) & 1;
  }
  template <class Sums>
  void insert(const Node<Sums>& node, std::int32_t j) {
    if (n_words_ > 0) word_[node.constant + (j >> 6)] |= std::uint64_t{1} << (j & 63);
  }

 private:
  static constexpr std::int64_t most_columns = 4096;  // more would take much memory
  std::int64_t n_words_;
  std::vector<std::uint64_t> word_;
};

/// Grows one tree after the other from rows of the same table; one thread's.
template <class Row, base::EncodedTable Table>
class AveragedTreeGrower {
 public:
  using Sums = typename Row::Sums;

  AveragedTreeGrower(const Table& table, const AveragedPlan& plan, const StopFlag& stop)
      : table_(table),
        plan_(plan),
        stop_(stop),
        limits_{0.0, least_weight(), 0},
        search_(table.layout, limits_, plan.constraints, plan.hyperplanes.unit_weight),
        hyperplanes_(table, limits_, plan.constraints, plan.hyperplanes, most_kept, stop),
        n_wanted_(plan.max_features == 0 ? table.layout.n_columns() : plan.max_features),
        constant_(table.layout.n_columns()) {
    lane_.resize(n_lanes * base::most_codes);
    word_.resize(base::most_codes);
    cell_.resize(base::most_codes);
  }
  AveragedTreeGrower(const AveragedTreeGrower&) = delete;  // searches refer to limits

  /// Grow a tree from the rows listed; the nodes stay until the next.
  std::vector<Node<Sums>>& grow(const PageVector<std::uint32_t>& rows, const Row* gradient,
                                      std::uint64_t key, bool has_hyperplanes) {
    gradient_ = gradient;
    has_hyperplanes_ = has_hyperplanes && plan_.hyperplanes.n_hyperplanes > 0;
    row_ = rows;
    remake(spare_, row_.size());
    remake(own_, row_.size());
    node_.assign(1, {});
    constant_.clear();
    Node<Sums>& root = node_[0];
    root.constant = constant_.inherit(-1);
    root.end = static_cast<std::int64_t>(row_.size());
    for (const std::uint32_t row : row_) gradient[row].add_to(root.sums);
    const double least = plan_.min_fraction * static_cast<double>(root.sums.h);
    limits_.least_hessian = std::max(least, least_weight());
    root.key = key;
    draw_tree_columns(key);
    root.freedom.groups.resize(plan_.constraints.group.size());
    std::iota(root.freedom.groups.begin(), root.freedom.groups.end(), 0);
    plan_.max_leaf_nodes == 0 ? grow_all() : grow_best_first();
    return node_;
  }

  const PageVector<std::uint32_t>& rows() const { return row_; }

 private:
  static constexpr bool has_entries = requires(const Table& table) {
    table.visit_entries(0, [](std::int32_t, int) {});
  };
  static constexpr std::uint64_t tree_columns = ~std::uint64_t{4};  // never the number of a column
  static constexpr std::int64_t many_rows = 256, n_lanes = 4;
  static constexpr std::size_t few_more = 4;  // columns that are sorted together with those wanted
  static constexpr std::int64_t most_kept = std::int64_t{1} << 22;  // values of a node

  double least_weight() const {
    return static_cast<double>(std::max<std::int64_t>(1, plan_.min_weight));
  }

  /// The columns that the nodes of a tree draw from: those of the smallest hashes.
  void draw_tree_columns(std::uint64_t key) {
    every_.resize(table_.layout.n_columns());
    std::iota(every_.begin(), every_.end(), 0);
    const auto n = static_cast<std::size_t>(plan_.max_features_per_tree);
    if (n == 0 || n >= every_.size()) return;
    shuffle_columns(hash64(key, tree_columns), every_);
    every_.resize(n);
    std::sort(every_.begin(), every_.end());
  }

  void grow_all() {
    std::vector<std::int64_t> open{0};
    while (!open.empty()) {
      const std::int64_t next = open.back();
      open.pop_back();
      choose_split(node_[next]);
      if (!node_[next].split.is_found()) continue;
      divide(next);
      open.push_back(node_[next].left + 1);
      open.push_back(node_[next].left);
    }
  }

  void grow_best_first() {
    choose_split(node_[0]);
    for (std::int64_t n_leaves = 1; n_leaves < plan_.max_leaf_nodes; ++n_leaves) {
      std::int64_t best = -1;
      for (std::size_t k = 0; k < node_.size(); ++k)
        if (node_[k].is_open() && (best < 0 || node_[k].rank > node_[best].rank))
          best = static_cast<std::int64_t>(k);
      if (best < 0) return;
      divide(best);
      const std::int64_t left = node_[best].left;
      choose_split(node_[left]);
      choose_split(node_[left + 1]);
    }
  }

  const split::StepBounds* bounds_of(const Node<Sums>& node) const {
    return plan_.constraints.is_monotone() ? &node.freedom.bounds : nullptr;
  }

  bool is_leaf(const Node<Sums>& node) const {
    if (node.depth >= plan_.max_depth || node.sums.h < plan_.min_split_weight) return true;
    const std::int64_t first = own_[0].gradient();
    return std::all_of(own_.begin() + 1, own_.begin() + node.n_rows(),
                       [=](const Row& each) { return each.gradient() == first; });
  }

  /// The gain of a split on average if the targets of the node were noise: their variance.
  double estimate_noise(const Node<Sums>& node) const {
    base::Wide squares;
    for (std::int64_t i = 0; i < node.n_rows(); ++i) {
      const Row& each = own_[i];
      const auto g = static_cast<std::uint64_t>(std::abs(each.gradient()));
      squares += base::multiply(g * g, static_cast<std::uint64_t>(each.weight()));
    }
    const auto h = static_cast<double>(node.sums.h);
    const double rest = squares.to_double() - split::compute_score(node.sums, limits_);
    return std::max(rest, 0.0) / h * plan_.hyperplanes.unit_weight;
  }

  void choose_split(Node<Sums>& node) {
    check_stop(stop_);
    for (std::int64_t i = 0; i < node.n_rows(); ++i) own_[i] = gradient_[row_[node.begin + i]];
    if (is_leaf(node)) return;
    const split::StepBounds* bounds = bounds_of(node);
    const double least = split::compute_least_score(node.sums, limits_, bounds);
    split::Split<Sums> single, plane;
    single.score = plane.score = least;
    if (has_hyperplanes_ && plan_.term_price > 0.0)
      limits_.term_price = plan_.term_price * estimate_noise(node);
    search_.start(node.sums, bounds);
    draw_columns(node, single);
    if (has_hyperplanes_)
      hyperplanes_.run_among(drawn_, row_.data() + node.begin, node.n_rows(), gradient_, node.sums,
                             node.key, node.freedom, plane, node.goes_left);
    const bool is_single = single.column >= 0;
    if (!plane.hyperplane.is_empty() && !(is_single && single.score > plane.score))
      node.split = std::move(plane);
    else if (is_single)
      node.split = std::move(single);
    else
      return;
    node.rank = node.split.score - split::compute_score(node.sums, limits_, bounds);
  }

  /// Draw columns with two bins in the node, of those of the tree, and look at their cuts; with
  /// groups, those of the groups that the node may use. The smallest hashes are drawn.
  void draw_columns(const Node<Sums>& node, split::Split<Sums>& best) {
    list_candidates(node);
    drawn_.clear();
    for (std::size_t first = 0; first < hashed_.size() && n_missing() > 0;) {
      const std::size_t last =
          std::min(hashed_.size(), first + static_cast<std::size_t>(n_missing()) + few_more);
      const auto begin = hashed_.begin();
      if (last < hashed_.size()) std::nth_element(begin + first, begin + last, hashed_.end());
      std::sort(begin + first, begin + last);
      if constexpr (has_entries) collect_entries(node, first, last);
      for (std::size_t slot = 0; first < last && n_missing() > 0; ++first, ++slot) {
        const std::int32_t j = hashed_[first].second;
        bool has_two = false;
        if constexpr (has_entries)
          has_two = look_at_entries(node, j, slot, best);
        else
          has_two = look_at(node, j, best);
        if (has_two)
          drawn_.push_back(j);
        else
          constant_.insert(node, j);
      }
    }
  }

  std::int64_t n_missing() const { return n_wanted_ - static_cast<std::int64_t>(drawn_.size()); }

  /// List the columns that may have two bins in the node, each with its hash.
  void list_candidates(const Node<Sums>& node) {
    const std::uint64_t key = draw_key(node.key);
    const bool has_groups = !plan_.constraints.group.empty();
    if (has_groups) list_allowed(node);
    const std::vector<std::int32_t>& columns = has_groups ? allowed_ : every_;
    hashed_.clear();
    const auto add = [&](std::int32_t j) {
      if (!constant_.contains(node, j))
        hashed_.push_back({hash64(key, static_cast<std::uint64_t>(j)), j});
    };
    if constexpr (has_entries) {
      // Columns without a stored entry are constant: of many columns, nearly all.
      slot_.resize(table_.layout.n_columns(), 0);
      for (std::int64_t i = node.begin; i < node.end; ++i)
        table_.visit_entries(row_[i], [&](std::int32_t j, int) { slot_[j] = 1; });
      for (const std::int32_t j : columns)
        if (slot_[j]) add(j);
      for (std::int64_t i = node.begin; i < node.end; ++i)
        table_.visit_entries(row_[i], [&](std::int32_t j, int) { slot_[j] = 0; });
    } else {
      for (const std::int32_t j : columns) add(j);
    }
  }

  /// A stored entry of a column in a node.
  struct Entry {
    std::uint32_t slot;  // of the column among some, counted from 1
    std::uint32_t row;   // among those of the node
    int bin;
  };

  /// Collect the entries of some candidates in a node, column by column.
  void collect_entries(const Node<Sums>& node, std::size_t first, std::size_t last) {
    for (std::size_t k = first; k < last; ++k)
      slot_[hashed_[k].second] = static_cast<std::uint32_t>(k - first + 1);
    entry_.clear();
    entry_start_.assign(last - first + 2, 0);
    for (std::int64_t i = node.begin; i < node.end; ++i)
      table_.visit_entries(row_[i], [&](std::int32_t j, int bin) {
        if (slot_[j] == 0) return;
        entry_.push_back({slot_[j], static_cast<std::uint32_t>(i - node.begin), bin});
        ++entry_start_[slot_[j]];
      });
    for (std::size_t k = first; k < last; ++k) slot_[hashed_[k].second] = 0;
    for (std::size_t k = 1; k < entry_start_.size(); ++k) entry_start_[k] += entry_start_[k - 1];
    by_column_.resize(entry_.size());
    std::vector<std::size_t> next(entry_start_);
    for (const Entry& each : entry_) by_column_[next[each.slot - 1]++] = each;
  }

  /// Look at the cuts of a column by its entries; returns whether it has two bins in the node.
  bool look_at_entries(const Node<Sums>& node, std::int32_t j, std::size_t slot,
                       split::Split<Sums>& best) {
    const std::size_t end = entry_start_[slot + 1];
    const auto n_stored = static_cast<std::int64_t>(end - entry_start_[slot]);
    Marks marks;
    for (std::size_t k = entry_start_[slot]; k < end;) {
      const std::size_t last = std::min(end, k + static_cast<std::size_t>(Row::rows_per_word));
      for (; k < last; ++k) {
        word_[by_column_[k].bin] += own_[by_column_[k].row];
        marks.insert(by_column_[k].bin);
      }
      empty_words(marks);
    }
    if (n_stored < node.n_rows()) {  // the others have the bin of zero
      Sums rest = node.sums;
      const int n = marks.list(present_);
      for (int k = 0; k < n; ++k) rest -= cell_[present_[k]];
      cell_[table_.layout.column[j].zero_bin] += rest;
      marks.insert(table_.layout.column[j].zero_bin);
    }
    const int n_present = marks.list(present_);
    if (n_present > 1 && plan_.axis_splits)
      search_.run_present(j, cell_.data(), present_, n_present, best);
    for (int k = 0; k < n_present; ++k) cell_[present_[k]] = Sums{};
    return n_present > 1;
  }

  /// List the columns of the tree that are in a group of the node.
  void list_allowed(const Node<Sums>& node) {
    allowed_.clear();
    for (const std::int32_t number : node.freedom.groups) {
      const std::vector<std::int32_t>& group = plan_.constraints.group[number];
      allowed_.insert(allowed_.end(), group.begin(), group.end());
    }
    std::sort(allowed_.begin(), allowed_.end());
    allowed_.erase(std::unique(allowed_.begin(), allowed_.end()), allowed_.end());
    std::erase_if(allowed_, [&](std::int32_t j) {
      return !std::binary_search(every_.begin(), every_.end(), j);
    });
  }

  /// Look at the cuts of a column; returns whether it has two bins in the node.
  bool look_at(const Node<Sums>& node, std::int32_t j, split::Split<Sums>& best) {
    if (!plan_.axis_splits) return has_two_bins(node, j);
    const bool is_small = node.n_rows() <= Row::rows_per_word;
    Marks marks;
    for (std::int64_t begin = node.begin; begin < node.end; begin += Row::rows_per_word) {
      const std::int64_t end = std::min(node.end, begin + Row::rows_per_word);
      if (end - begin < many_rows)
        count_few(j, node.begin, begin, end, marks);
      else
        count_many(j, node.begin, begin, end, marks);
      if (!is_small) empty_words(marks);
    }
    const int n_present = marks.list(present_);
    if (n_present > 1) search_present(j, n_present, is_small, best);
    for (int k = 0; k < n_present; ++k) {
      word_[present_[k]] = Row{};
      cell_[present_[k]] = Sums{};
    }
    return n_present > 1;
  }

  /// Bins of which rows were seen.
  struct Marks {
    std::uint64_t word[base::most_codes / 64] = {};

    void insert(int bin) { word[bin >> 6] |= std::uint64_t{1} << (bin & 63); }
    /// Write them, ascending; returns their number.
    int list(int* bin) const {
      int n = 0;
      for (int k = 0; k < base::most_codes / 64; ++k)
        for (std::uint64_t bits = word[k]; bits; bits &= bits - 1)
          bin[n++] = 64 * k + std::countr_zero(bits);
      return n;
    }
  };

  /// Add rows to the words of their bins in a column.
  void count_few(std::int32_t j, std::int64_t first, std::int64_t begin, std::int64_t end,
                 Marks& marks) {
    for (std::int64_t i = begin; i < end; ++i) {
      const int b = table_.bin(row_[i], j);
      word_[b] += own_[i - first];
      marks.insert(b);
    }
  }

  /// The same in several lanes: if most rows have the same bin, no addition waits for the last.
  void count_many(std::int32_t j, std::int64_t first, std::int64_t begin, std::int64_t end,
                  Marks& marks) {
    std::int64_t i = begin;
    for (; i + n_lanes <= end; i += n_lanes)
      for (std::int64_t k = 0; k < n_lanes; ++k)
        lane_[n_lanes * table_.bin(row_[i + k], j) + k] += own_[i + k - first];
    for (; i < end; ++i) lane_[n_lanes * table_.bin(row_[i], j)] += own_[i - first];
    for (int b = 0; b <= table_.layout.column[j].n_bins; ++b) {
      Row* of_bin = &lane_[n_lanes * b];
      Row sum;
      for (std::int64_t k = 0; k < n_lanes; ++k) sum += of_bin[k];
      if (sum.is_empty()) continue;
      word_[b] += sum;
      marks.insert(b);
      std::fill_n(of_bin, n_lanes, Row{});
    }
  }

  /// Add the words of bins to their sums.
  void empty_words(const Marks& marks) {
    int bin[base::most_codes];
    const int n = marks.list(bin);
    for (int k = 0; k < n; ++k) {
      word_[bin[k]].add_to(cell_[bin[k]]);
      word_[bin[k]] = Row{};
    }
  }

  void search_present(std::int32_t j, int n_present, bool is_small, split::Split<Sums>& best) {
    if constexpr (Row::is_packed)
      if (is_small) return search_.run_present(j, word_.data(), present_, n_present, best);
    for (int k = 0; k < n_present; ++k) word_[present_[k]].add_to(cell_[present_[k]]);
    search_.run_present(j, cell_.data(), present_, n_present, best);
  }

  bool has_two_bins(const Node<Sums>& node, std::int32_t j) const {
    const int first = table_.bin(row_[node.begin], j);
    for (std::int64_t i = node.begin + 1; i < node.end; ++i)
      if (table_.bin(row_[i], j) != first) return true;
    return false;
  }

  /// Divide the rows of a node among two children.
  void divide(std::int64_t number) {
    const auto first = static_cast<std::int64_t>(node_.size());
    node_[number].left = first;
    const std::int64_t middle = node_[number].begin + move_left(node_[number]);
    Node<Sums> left = make_child(node_[number], false, middle),
               right = make_child(node_[number], true, middle);
    const Node<Sums>& parent = node_[number];
    const split::Constraints& constraints = plan_.constraints;
    if (constraints.is_monotone())
      std::tie(left.freedom.bounds, right.freedom.bounds) =
          split::divide_bounds(left.sums, right.sums, limits_, parent.freedom.bounds,
                               constraints.order_of(parent.split, table_.layout));
    if (!constraints.group.empty()) {
      left.freedom.groups = constraints.keep_groups(parent.freedom.groups, parent.split);
      right.freedom.groups = left.freedom.groups;
    }
    node_[number].goes_left = {};
    left.constant = constant_.inherit(parent.constant);
    right.constant = constant_.inherit(parent.constant);
    node_.push_back(std::move(left));
    node_.push_back(std::move(right));
  }

  Node<Sums> make_child(const Node<Sums>& parent, bool is_right, std::int64_t middle) const {
    Node<Sums> child;
    child.key = child_key(parent.key, is_right);
    child.begin = is_right ? middle : parent.begin;
    child.end = is_right ? parent.end : middle;
    child.sums = is_right ? parent.sums - parent.split.left : parent.split.left;
    child.depth = parent.depth + 1;
    return child;
  }

  /// Move the rows that go left to the front, all in their old order; returns their number.
  std::int64_t move_left(const Node<Sums>& node) {
    std::uint32_t* row = row_.data() + node.begin;
    const bool is_plane = !node.split.hyperplane.is_empty();
    std::int64_t n_left = 0, n_right = 0;
    for (std::int64_t i = 0; i < node.n_rows(); ++i) {
      const std::uint32_t each = row[i];
      const bool is_left = is_plane ? node.goes_left[i] != 0 : node.split.goes_left(table_, each);
      row[n_left] = each;
      spare_[n_right] = each;
      n_left += is_left;
      n_right += !is_left;
    }
    std::copy_n(spare_.begin(), n_right, row + n_left);
    return n_left;
  }

  const Table& table_;
  const AveragedPlan& plan_;
  const StopFlag& stop_;
  split::Limits limits_;
  split::ColumnSearch<Row> search_;
  split::HyperplaneSearch<Row, Table> hyperplanes_;
  std::int64_t n_wanted_;
  std::vector<std::int32_t> every_, allowed_, drawn_;
  std::vector<std::pair<std::uint64_t, std::int32_t>> hashed_;  // columns that may be drawn
  std::vector<std::uint32_t> slot_;  // of columns with stored entries, zeros between two steps
  std::vector<Entry> entry_, by_column_;
  std::vector<std::size_t> entry_start_;
  ConstantColumns constant_;
  int present_[base::most_codes];
  std::vector<Row> lane_;   // parts of the words of bins
  std::vector<Row> word_;   // sums of bins of few rows, zeros between two columns
  std::vector<Sums> cell_;  // of more
  PageVector<Row> own_;     // gradients of the rows of the node, in their order
  const Row* gradient_ = nullptr;
  bool has_hyperplanes_ = false;
  PageVector<std::uint32_t> row_, spare_;
  std::vector<Node<Sums>> node_;
};

}  // namespace lhtree::grow
