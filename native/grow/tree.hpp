// Growing one tree best first, on sums of gradients and hessians.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/table.hpp"
#include "base/team.hpp"
#include "grow/column_splits.hpp"
#include "grow/node.hpp"
#include "grow/partition.hpp"
#include "old/pages.hpp"
#include "old/random.hpp"
#include "old/stop.hpp"
#include "split/constraints.hpp"
#include "split/hyperplanes.hpp"

namespace lhtree::grow {

/// Grows trees one after the other from the same table; the memory of one serves the next.
template <class Row, base::EncodedTable Table>
class TreeGrower {
 public:
  using Sums = typename Row::Sums;
  using Pair = ColumnSplits<Row, Table>::Pair;

  /// What `grow` throws once `stop` is set leaves nothing behind that counts.
  TreeGrower(const Table& table, const TreeSettings& settings, base::Team& team,
             const StopFlag& stop)
      : table_(table),
        settings_(settings),
        team_(team),
        stop_(stop),
        columns_(table, settings_, team, stop),
        partition_(table.n_rows, team) {
    // Of a large table, an eighth of what it takes in doubles.
    const std::int64_t most_kept =
        std::max(least_kept, table.n_rows * table.layout.n_columns() / 4);
    const auto add_search = [&](std::int64_t n_values, base::Team* helpers) {
      planes_.push_back(std::make_unique<Planes>(table, settings_.limits, settings_.constraints,
                                                 settings_.hyperplanes, n_values, stop, helpers));
    };
    add_search(most_kept, team.size() > 1 ? &team : nullptr);
    for (std::int64_t k = 0; k < team.size() && team.size() > 1; ++k)
      add_search(most_kept / team.size(), nullptr);
  }
  TreeGrower(const TreeGrower&) = delete;  // workers refer to the settings

  /// Grow a tree from the rows listed, whose sum is `whole`; the nodes stay until the next.
  const std::vector<Node<Sums>>& grow(const PageVector<std::uint32_t>& rows, const Row* gradient,
                                      const Sums& whole, const TreeDraw& draw) {
    gradient_ = gradient;
    has_hyperplanes_ = draw.has_hyperplanes && settings_.hyperplanes.n_hyperplanes > 0;
    settings_.limits.least_gain = settings_.min_gain * draw.noise;
    settings_.limits.category_price = settings_.limits.least_gain * category_share;
    settings_.limits.term_price = settings_.limits.least_gain * term_share;
    partition_.start(rows);
    columns_.pool().give_all();
    node_.assign(1, {});
    node_[0].end = static_cast<std::int64_t>(rows.size());
    node_[0].sums = whole;
    node_[0].key = draw.key;
    node_[0].freedom.groups.resize(settings_.constraints.group.size());
    std::iota(node_[0].freedom.groups.begin(), node_[0].freedom.groups.end(), 0);
    if (may_split(node_[0])) {
      node_[0].histogram = columns_.pool().take();
      choose_splits({&node_[0], nullptr, false});
    }
    for (std::int64_t n_leaves = 1; n_leaves < settings_.size.max_leaf_nodes; ++n_leaves) {
      check_stop(stop_);
      const std::int64_t next = select_next();
      if (next < 0) break;
      divide(next, n_leaves + 1 < settings_.size.max_leaf_nodes);
    }
    check_stop(stop_);
    return node_;
  }

  const PageVector<std::uint32_t>& rows() const { return partition_.rows(); }

 private:
  using Planes = split::HyperplaneSearch<Row, Table>;

  static constexpr std::int64_t least_kept = std::int64_t{1} << 21;  // values on the grid
  static constexpr double category_share = 0.125;  // of the least gain, for each but one
  static constexpr double term_share = 0.25;
  static constexpr std::int64_t many_rows = 1 << 11;  // of a node, for a team to share them

  bool may_split(const Node<Sums>& node) const {
    return node.depth < settings_.size.max_depth && settings_.size.max_leaf_nodes > 1;
  }

  /// The bounds of the steps of a node; null where no column has a trend.
  const split::StepBounds* bounds_of(const Node<Sums>& node) const {
    return settings_.constraints.is_monotone() ? &node.freedom.bounds : nullptr;
  }

  /// Mark the columns of the groups that a node may use.
  void allow_columns(Node<Sums>& node) const {
    node.takes_part.assign(table_.layout.n_columns(), 0);
    for (const std::int32_t number : node.freedom.groups)
      for (const std::int32_t j : settings_.constraints.group[number]) node.takes_part[j] = 1;
  }

  /// Mark the columns of a node that have the smallest hashes, of those that it may use.
  void draw_columns(Node<Sums>& node) {
    const std::int64_t n_columns = table_.layout.n_columns(), n = settings_.max_features;
    if (!settings_.constraints.group.empty()) allow_columns(node);
    if (n == 0 || n >= n_columns) return;
    hash_.clear();
    for (std::int64_t j = 0; j < n_columns; ++j)
      if (node.takes_part.empty() || node.takes_part[j])
        hash_.push_back({hash64(node.key, static_cast<std::uint64_t>(j)), j});
    if (n >= static_cast<std::int64_t>(hash_.size())) return;
    std::nth_element(hash_.begin(), hash_.begin() + n, hash_.end());
    node.takes_part.assign(n_columns, 0);
    for (std::int64_t k = 0; k < n; ++k) node.takes_part[hash_[k].second] = 1;
  }

  /// Choose the splits of a node, or of two siblings.
  void choose_splits(const Pair& pair) {
    std::vector<Node<Sums>*> nodes{pair.built}, without;  // those that no single column divides
    if (pair.other) nodes.push_back(pair.other);
    for (Node<Sums>* node : nodes) draw_columns(*node);
    columns_.choose(pair, rows().data(), gradient_);
    for (Node<Sums>* node : nodes)
      if (!node->split.is_found()) without.push_back(node);
    try_hyperplanes(without);
    for (Node<Sums>* node : nodes) {
      node->takes_part = {};
      if (node->split.is_found())
        node->rank = node->split.score -
                     split::compute_score(node->sums, settings_.limits, bounds_of(*node));
      else
        columns_.pool().give(node->histogram);
    }
  }

  /// Replace the splits of nodes by hyperplanes of larger scores: large nodes one after the other,
  /// each by all threads, small ones side by side.
  void try_hyperplanes(const std::vector<Node<Sums>*>& nodes) {
    if (!has_hyperplanes_) return;
    std::vector<Node<Sums>*> small;
    for (Node<Sums>* node : nodes)
      is_shared(*node) ? try_hyperplanes(*node, *planes_[0]) : small.push_back(node);
    team_.share(static_cast<std::int64_t>(small.size()), [&](std::int64_t k, std::int64_t lane) {
      try_hyperplanes(*small[k], *planes_[team_.size() > 1 ? lane + 1 : 0]);
    });
  }

  bool is_shared(const Node<Sums>& node) const {
    return team_.size() > 1 && node.n_rows() >= many_rows;
  }

  void try_hyperplanes(Node<Sums>& node, Planes& planes) {
    split::Split<Sums> best = node.split;
    if (!best.is_found())
      best.score = split::compute_least_score(node.sums, settings_.limits, bounds_of(node));
    planes.run(rows().data() + node.begin, node.n_rows(), gradient_, node.sums, node.key,
               node.freedom, best, node.goes_left);
    node.is_tried = true;
    if (!best.hyperplane.is_empty()) node.split = std::move(best);
  }

  /// Try the hyperplanes of a node that is to be divided; helpers those of the small nodes that
  /// are likely to follow, which changes no result.
  void finish_split(Node<Sums>& next) {
    if (next.is_tried) return;
    std::vector<Node<Sums>*> open;
    for (Node<Sums>& node : node_)
      if (team_.size() > 1 && node.is_open() && !node.is_tried && &node != &next &&
          !is_shared(node))
        open.push_back(&node);
    const bool is_alone = is_shared(next);
    const auto n = is_alone ? 0 : std::min<std::int64_t>(open.size(), team_.size() - 1);
    std::partial_sort(open.begin(), open.begin() + n, open.end(),
                      [&](auto a, auto b) { return a->rank > b->rank; });
    open.resize(n);
    open.insert(open.begin(), &next);
    try_hyperplanes(open);
  }

  /// The open node of largest rank, the oldest of equal ones; -1 if there is none.
  std::int64_t select_next() const {
    std::int64_t best = -1;
    for (std::size_t k = 0; k < node_.size(); ++k)
      if (node_[k].is_open() && (best < 0 || node_[k].rank > node_[best].rank))
        best = static_cast<std::int64_t>(k);
    return best;
  }

  Node<Sums> make_child(const Node<Sums>& parent, bool is_right, std::int64_t begin,
                        std::int64_t end, const Sums& sums) const {
    Node<Sums> child;
    child.key = child_key(parent.key, is_right);
    child.begin = begin;
    child.end = end;
    child.sums = sums;
    child.depth = parent.depth + 1;
    return child;
  }

  /// What constraints leave to the children of a node.
  void constrain(const Node<Sums>& parent, Node<Sums>& left, Node<Sums>& right) const {
    const split::Constraints& constraints = settings_.constraints;
    if (constraints.is_monotone())
      std::tie(left.freedom.bounds, right.freedom.bounds) =
          split::divide_bounds(left.sums, right.sums, settings_.limits, parent.freedom.bounds,
                               constraints.order_of(parent.split, table_.layout));
    if (constraints.group.empty()) return;
    left.freedom.groups = constraints.keep_groups(parent.freedom.groups, parent.split);
    right.freedom.groups = left.freedom.groups;
  }

  /// Divide the rows of a node among two children, and choose their splits if there may be more.
  void divide(std::int64_t number, bool goes_on) {
    finish_split(node_[number]);
    const auto first = static_cast<std::int64_t>(node_.size());
    node_[number].left = first;
    const Node<Sums>& parent = node_[number];
    const std::int64_t middle = parent.begin + move_left(parent);
    Node<Sums> left = make_child(parent, false, parent.begin, middle, parent.split.left);
    Node<Sums> right =
        make_child(parent, true, middle, parent.end, parent.sums - parent.split.left);
    constrain(parent, left, right);
    node_[number].goes_left = {};
    node_.push_back(std::move(left));
    node_.push_back(std::move(right));
    stats::HistogramPool<Row>& pool = columns_.pool();
    if (!goes_on || !may_split(node_[first])) return pool.give(node_[number].histogram);
    const bool is_left_small = node_[first].n_rows() <= node_[first + 1].n_rows();
    const std::int64_t small = is_left_small ? first : first + 1;
    const std::int64_t large = is_left_small ? first + 1 : first;
    const bool is_kept = node_[number].histogram >= 0;
    node_[large].histogram =
        is_kept ? std::exchange(node_[number].histogram, -1) : take_histogram();
    node_[small].histogram = take_histogram();
    choose_splits({&node_[small], &node_[large], is_kept});
  }

  /// A histogram; if there are no more, that of the open node of least rank.
  std::int64_t take_histogram() {
    stats::HistogramPool<Row>& pool = columns_.pool();
    if (pool.is_exhausted()) {
      Node<Sums>* least = nullptr;
      for (Node<Sums>& node : node_)
        if (node.is_open() && node.histogram >= 0 && (!least || node.rank < least->rank))
          least = &node;
      if (least) pool.give(least->histogram);
    }
    return pool.take();
  }

  /// Move the rows that go left to the front, all in their old order; returns their number.
  std::int64_t move_left(const Node<Sums>& node) {
    const split::Split<Sums>& split = node.split;
    if (!split.hyperplane.is_empty())
      return partition(node, [&](std::uint32_t, std::int64_t i) { return node.goes_left[i]; });
    if (table_.layout.column[split.column].is_category)
      return partition(node, [&](std::uint32_t row, std::int64_t) {
        return split.codes.contains(table_.bin(row, split.column));
      });
    const std::int64_t column = split.column;
    const int missing = table_.layout.column[column].n_bins;
    return partition(node, [&](std::uint32_t row, std::int64_t) {
      const int b = table_.bin(row, column);
      return b == missing ? split.missing_left : b <= split.cut;
    });
  }

  template <class GoesLeft>
  std::int64_t partition(const Node<Sums>& node, const GoesLeft& goes_left) {
    const bool is_read = node.split.hyperplane.is_empty();
    return partition_.move_left(node.begin, node.end, goes_left, [&](std::uint32_t row) {
      if (is_read) table_.prefetch_bins(row);
    });
  }

  const Table& table_;
  TreeSettings settings_;
  base::Team& team_;
  const StopFlag& stop_;
  ColumnSplits<Row, Table> columns_;
  RowPartition partition_;
  std::vector<std::unique_ptr<Planes>> planes_;  // of the team, and of each of several threads
  const Row* gradient_ = nullptr;
  bool has_hyperplanes_ = false;
  std::vector<std::pair<std::uint64_t, std::int64_t>> hash_;
  std::vector<Node<Sums>> node_;
};

}  // namespace lhtree::grow
