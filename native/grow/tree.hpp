// Growing one tree best first, on sums of gradients and hessians.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/table.hpp"
#include "base/team.hpp"
#include "old/pages.hpp"
#include "old/random.hpp"
#include "old/stop.hpp"
#include "split/columns.hpp"
#include "split/constraints.hpp"
#include "split/hyperplanes.hpp"
#include "stats/pool.hpp"

namespace lhtree::grow {

/// How large a tree may become.
struct TreeSize {
  std::int64_t max_leaf_nodes = 31;
  std::int64_t max_depth = std::numeric_limits<std::int64_t>::max();
};

struct TreeSettings {
  TreeSize size;
  split::Limits limits;
  double hessian_of_row = 1.0;    // the largest that a row of weight one may have, as an integer
  double min_gain = 0.0;          // of a split, in units of the noise
  std::int64_t max_features = 0;  // columns that a node draws for its single splits; 0: all
  split::HyperplaneSettings hyperplanes;
  split::Constraints constraints;
};

/// What differs from tree to tree.
struct TreeDraw {
  std::uint64_t key = 0;
  double noise = 0.0;  // the gain of a split of targets that are noise, on average
  bool has_hyperplanes = true;
};

/// A node of a tree that grows. Its rows lie from `begin` to `end` in the rows of the tree.
template <class Sums>
struct Node {
  std::int64_t begin = 0, end = 0;
  Sums sums;
  std::int64_t depth = 0;
  std::uint64_t key = 0;  // of its draws
  split::Freedom freedom;
  split::Split<Sums> split;
  double rank = 0.0;                     // gain of its best split by a single column
  std::vector<std::uint8_t> takes_part;  // columns that it drew for its single splits; empty: all
  bool is_tried = false;                 // whether hyperplanes were tried
  std::vector<std::uint8_t> goes_left;   // of its rows, if a hyperplane won
  std::int64_t constant = -1;   // where the columns that are constant in it are listed, in forests
  std::int64_t left = -1;       // number of the left child, the right one follows; -1: a leaf
  std::int64_t histogram = -1;  // its position in the pool, while the node is open

  std::int64_t n_rows() const { return end - begin; }
  bool is_open() const { return left < 0 && split.is_found(); }
};

/// Grows trees one after the other from the same table; the memory of one serves the next.
template <class Row, base::EncodedTable Table>
class TreeGrower {
 public:
  using Sums = typename Row::Sums;
  using Histogram = stats::Histogram<Row>;

  /// What `grow` throws once `stop` is set leaves nothing behind that counts.
  TreeGrower(const Table& table, const TreeSettings& settings, base::Team& team,
             const StopFlag& stop)
      : table_(table),
        settings_(settings),
        team_(team),
        stop_(stop),
        pool_(table.layout.n_places(),
              std::max(least_pool, table.n_rows * table.layout.n_columns() / 8)) {
    workers_.reserve(team.size());
    // Of a large table, an eighth of what it takes in doubles.
    const std::int64_t most_kept =
        std::max(least_kept, table.n_rows * table.layout.n_columns() / 4);
    for (std::int64_t k = 0; k < team.size(); ++k)
      workers_.emplace_back(table, settings_, most_kept / team.size(), stop);
    spare_.resize(table.n_rows);
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
    row_ = rows;
    pool_.give_all();
    node_.assign(1, {});
    node_[0].end = static_cast<std::int64_t>(row_.size());
    node_[0].sums = whole;
    node_[0].key = draw.key;
    node_[0].freedom.groups.resize(settings_.constraints.group.size());
    std::iota(node_[0].freedom.groups.begin(), node_[0].freedom.groups.end(), 0);
    if (may_split(node_[0])) {
      node_[0].histogram = pool_.take();
      choose_splits({0, -1, false});
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

  const PageVector<std::uint32_t>& rows() const { return row_; }

 private:
  static constexpr std::int64_t least_pool = std::int64_t{1} << 22;  // bytes
  static constexpr std::int64_t least_kept = std::int64_t{1} << 21;  // values on the grid
  static constexpr double category_share = 0.125;  // of the least gain, for each but one
  static constexpr double term_share = 0.25;
  static constexpr std::int64_t small_step = 1 << 14;  // additions that are not worth a helper

  /// What a thread needs.
  struct Worker {
    Worker(const Table& table, const TreeSettings& settings, std::int64_t most_kept,
           const StopFlag& stop)
        : builder(table, stop),
          columns(table.layout, settings.limits, settings.constraints, settings.hessian_of_row),
          hyperplanes(table, settings.limits, settings.constraints, settings.hyperplanes, most_kept,
                      stop) {}
    stats::HistogramBuilder<Row, Table> builder;
    split::ColumnSearch<Row> columns;
    split::HyperplaneSearch<Row, Table> hyperplanes;
  };

  /// Nodes whose splits are chosen together: one, or two siblings.
  struct Pair {
    std::int64_t built;  // the node whose histogram is summed
    std::int64_t other;  // its sibling, -1 if there is none
    bool is_subtracted;  // the sibling has the histogram of their parent: subtract
  };

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
    for (const std::int64_t number : {pair.built, pair.other})
      if (number >= 0) draw_columns(node_[number]);
    const bool was_packed = make_room(pair);
    const std::int64_t n_columns = table_.layout.n_columns();
    const std::int64_t n_rows = node_[pair.built].n_rows();
    const bool is_small = n_rows * n_columns < small_step;
    const std::int64_t n_wanted = std::max((n_columns + columns_at_once - 1) / columns_at_once,
                                           is_small ? 1 : std::min(n_columns, team_.size()));
    std::vector<split::Split<Sums>> best(2 * n_wanted);
    for (split::Split<Sums>& each : best) each.score = 0.0;
    const auto step = [&](std::int64_t part, Worker& worker) {
      const std::int64_t first = n_columns * part / n_wanted;
      const std::int64_t last = n_columns * (part + 1) / n_wanted;
      search_columns(pair, was_packed, first, last, worker, best.data() + 2 * part);
    };
    run_steps(n_wanted, step);
    for (const int side : {0, 1}) {
      const std::int64_t number = side == 0 ? pair.built : pair.other;
      if (number < 0) continue;
      for (std::int64_t part = 0; part < n_wanted; ++part)
        if (best[2 * part + side].score > node_[number].split.score)
          node_[number].split = std::move(best[2 * part + side]);
    }
    std::vector<std::int64_t> without;  // those that no single column divides
    for (const std::int64_t number : {pair.built, pair.other})
      if (number >= 0 && !node_[number].split.is_found()) without.push_back(number);
    try_hyperplanes(without);
    for (const std::int64_t number : {pair.built, pair.other}) {
      if (number < 0) continue;
      Node<Sums>& node = node_[number];
      node.takes_part = {};
      if (node.split.is_found())
        node.rank =
            node.split.score - split::compute_score(node.sums, settings_.limits, bounds_of(node));
      else
        pool_.give(node.histogram);
    }
  }

  /// Have room for the histograms of nodes; returns whether that of their parent was packed.
  bool make_room(const Pair& pair) {
    const bool was_packed = pair.is_subtracted && pool_[node_[pair.other].histogram].is_packed;
    for (const std::int64_t number : {pair.built, pair.other})
      if (number >= 0)
        pool_[node_[number].histogram].make_room(pool_.n_places(), node_[number].n_rows());
    return was_packed;
  }

  void search_columns(const Pair& pair, bool was_packed, std::int64_t first, std::int64_t last,
                      Worker& worker, split::Split<Sums>* best) {
    const auto search = [&](const Node<Sums>& node, split::Split<Sums>& found) {
      const split::StepBounds* bounds = bounds_of(node);
      found.score = split::compute_least_score(node.sums, settings_.limits, bounds);
      const double least = found.score;
      const std::uint8_t* takes_part = node.takes_part.empty() ? nullptr : node.takes_part.data();
      worker.columns.run(pool_[node.histogram], node.sums, first, last, takes_part, bounds, found);
      if (found.score == least && found.column < 0) found.score = 0.0;
    };
    const Node<Sums>& built = node_[pair.built];
    build(built, first, last, worker);
    search(built, best[0]);
    if (pair.other < 0) return;
    const Node<Sums>& other = node_[pair.other];
    if (pair.is_subtracted) {
      const std::vector<std::int64_t>& start = table_.layout.start;
      pool_[other.histogram].subtract(pool_[built.histogram], was_packed, start[first],
                                      start[last]);
    } else {
      build(other, first, last, worker);
    }
    search(other, best[1]);
  }

  void build(const Node<Sums>& node, std::int64_t first, std::int64_t last, Worker& worker) {
    worker.builder.build(row_.data() + node.begin, node.n_rows(), gradient_, node.sums, first, last,
                         pool_[node.histogram]);
  }

  /// Replace the splits of nodes by hyperplanes of larger scores.
  void try_hyperplanes(const std::vector<std::int64_t>& numbers) {
    if (!has_hyperplanes_) return;
    run_steps(static_cast<std::int64_t>(numbers.size()), [&](std::int64_t k, Worker& worker) {
      Node<Sums>& node = node_[numbers[k]];
      split::Split<Sums> best = node.split;
      if (!best.is_found())
        best.score = split::compute_least_score(node.sums, settings_.limits, bounds_of(node));
      worker.hyperplanes.run(row_.data() + node.begin, node.n_rows(), gradient_, node.sums,
                             node.key, node.freedom, best, node.goes_left);
      node.is_tried = true;
      if (!best.hyperplane.is_empty()) node.split = std::move(best);
    });
  }

  /// Try the hyperplanes of a node that is to be divided; helpers those of the nodes that are
  /// likely to follow, which changes no result.
  void finish_split(std::int64_t number) {
    if (node_[number].is_tried) return;
    std::vector<std::int64_t> open;
    for (std::size_t k = 0; k < node_.size() && team_.size() > 1; ++k)
      if (node_[k].is_open() && !node_[k].is_tried && static_cast<std::int64_t>(k) != number)
        open.push_back(static_cast<std::int64_t>(k));
    const auto n = std::min<std::int64_t>(open.size(), team_.size() - 1);
    std::partial_sort(open.begin(), open.begin() + n, open.end(),
                      [&](auto a, auto b) { return node_[a].rank > node_[b].rank; });
    open.resize(n);
    open.insert(open.begin(), number);
    try_hyperplanes(open);
  }

  /// Run step(i, worker) for i = 0 ... n - 1.
  template <class Step>
  void run_steps(std::int64_t n, const Step& step) {
    std::atomic<std::int64_t> next_worker{0};
    const std::int64_t n_takers = std::min(n, team_.size());
    std::atomic<std::int64_t> next{0};
    team_.run(n_takers, [&](std::int64_t) {
      Worker& worker = workers_[next_worker++];
      for (std::int64_t i = next++; i < n; i = next++) step(i, worker);
    });
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
    finish_split(number);
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
    if (!goes_on || !may_split(node_[first])) return pool_.give(node_[number].histogram);
    const bool is_left_small = node_[first].n_rows() <= node_[first + 1].n_rows();
    const std::int64_t small = is_left_small ? first : first + 1;
    const std::int64_t large = is_left_small ? first + 1 : first;
    const bool is_kept = node_[number].histogram >= 0;
    node_[large].histogram =
        is_kept ? std::exchange(node_[number].histogram, -1) : take_histogram();
    node_[small].histogram = take_histogram();
    choose_splits({small, large, is_kept});
  }

  /// A histogram; if there are no more, that of the open node of least rank.
  std::int64_t take_histogram() {
    if (pool_.is_exhausted()) {
      Node<Sums>* least = nullptr;
      for (Node<Sums>& node : node_)
        if (node.is_open() && node.histogram >= 0 && (!least || node.rank < least->rank))
          least = &node;
      if (least) pool_.give(least->histogram);
    }
    return pool_.take();
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
    constexpr std::int64_t ahead = 16;
    std::uint32_t* row = row_.data() + node.begin;
    const bool is_read = node.split.hyperplane.is_empty();
    std::int64_t n_left = 0, n_right = 0;
    for (std::int64_t i = 0; i < node.n_rows(); ++i) {
      const std::uint32_t each = row[i];
      if (is_read && i + ahead < node.n_rows()) table_.prefetch_bins(row[i + ahead]);
      const bool is_left = goes_left(each, i);
      row[n_left] = each;
      spare_[n_right] = each;
      n_left += is_left;
      n_right += !is_left;
    }
    std::memcpy(row + n_left, spare_.data(), n_right * sizeof(std::uint32_t));
    return n_left;
  }

  static constexpr std::int64_t columns_at_once =
      stats::HistogramBuilder<Row, Table>::columns_at_once;

  const Table& table_;
  TreeSettings settings_;
  base::Team& team_;
  const StopFlag& stop_;
  std::vector<Worker> workers_;
  stats::HistogramPool<Row> pool_;
  const Row* gradient_ = nullptr;
  bool has_hyperplanes_ = false;
  PageVector<std::uint32_t> row_, spare_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> hash_;
  std::vector<Node<Sums>> node_;
};

}  // namespace lhtree::grow
