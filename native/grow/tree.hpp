// Growing one tree best first, on sums of gradients and hessians.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/binned_table.hpp"
#include "old/random.hpp"
#include "old/stop.hpp"
#include "split/gain.hpp"
#include "split/projection.hpp"
#include "stats/histogram.hpp"

namespace lhtree::grow {

/// How large a tree may become.
struct TreeSize {
  std::int64_t max_leaf_nodes = 31;
  std::int64_t max_depth = std::numeric_limits<std::int64_t>::max();
};

/// Which hyperplanes are tried in each node beside its single columns.
struct HyperplaneSettings {
  std::int64_t n_hyperplanes = 0;
  std::int64_t n_drawn = 0;  // columns of a hyperplane
  double shrinkage = 0.3;    // of their correlations
};

/// A node of a tree that grows. Its rows lie from `begin` to `end` in the rows of the tree.
struct Node {
  std::int64_t begin = 0, end = 0;
  stats::Sums sums;
  std::int64_t depth = 0;
  std::uint64_t key = 0;  // of its draws
  split::AxisSplit split;
  split::Hyperplane hyperplane;  // in place of a column, if it has terms
  std::int64_t threshold = 0;    // projections below it go left
  std::int64_t left = -1;        // number of the left child, the right one follows; -1: a leaf
  std::int64_t histogram = -1;   // its place in the pool while the node is open

  std::int64_t n_rows() const { return end - begin; }
  bool is_open() const { return left < 0 && split.column >= 0; }
};

/// Grows trees one after the other from the same table; the memory of one serves the next.
class TreeGrower {
 public:
  TreeGrower(const base::BinnedTable& table, const base::GridTable& grid,
             const split::Limits& limits, const TreeSize& size,
             const HyperplaneSettings& hyperplanes)
      : table_(table),
        grid_(grid),
        size_(size),
        hyperplanes_(hyperplanes),
        builder_(table),
        search_(table, limits),
        finder_(hyperplanes.shrinkage),
        projections_(limits) {
    row_.resize(table.n_rows);
    spare_.resize(table.n_rows);
  }

  /// Grow a tree for packed gradients; `rows` and the returned nodes stay until the next.
  const std::vector<Node>& grow(const stats::Packed* packed, const stats::Sums& whole,
                                std::uint64_t key, const StopFlag& stop) {
    packed_ = packed;
    for (std::int64_t i = 0; i < table_.n_rows; ++i) row_[i] = static_cast<std::uint32_t>(i);
    free_.resize(pool_.size());
    for (std::size_t k = 0; k < free_.size(); ++k) free_[k] = static_cast<std::int64_t>(k);
    node_.assign(1, Node{});
    node_[0].end = table_.n_rows;
    node_[0].sums = whole;
    node_[0].key = key;
    if (can_split(node_[0])) {
      node_[0].histogram = take_histogram();
      builder_.build(row_.data(), table_.n_rows, packed_, pool_[node_[0].histogram]);
      choose_split(node_[0]);
    }
    for (std::int64_t n_leaves = 1; n_leaves < size_.max_leaf_nodes; ++n_leaves) {
      check_stop(stop);
      const std::int64_t next = find_next();
      if (next < 0) break;
      divide(next, n_leaves + 1 < size_.max_leaf_nodes);
    }
    return node_;
  }

  const std::uint32_t* rows() const { return row_.data(); }

 private:
  bool can_split(const Node& node) const {
    return node.depth < size_.max_depth && size_.max_leaf_nodes > 1;
  }

  static Node make_child(const Node& parent, bool is_right, std::int64_t begin, std::int64_t end,
                         const stats::Sums& sums) {
    Node child;
    child.key = child_key(parent.key, is_right);
    child.begin = begin;
    child.end = end;
    child.sums = sums;
    child.depth = parent.depth + 1;
    return child;
  }

  std::int64_t take_histogram() {
    if (free_.empty()) {
      pool_.emplace_back();
      return static_cast<std::int64_t>(pool_.size()) - 1;
    }
    const std::int64_t place = free_.back();
    free_.pop_back();
    return place;
  }

  void choose_split(Node& node) {
    node.split = search_.run(pool_[node.histogram], node.sums);
    if (hyperplanes_.n_hyperplanes > 0) try_hyperplane(node);
    if (node.split.column < 0) free_.push_back(std::exchange(node.histogram, -1));
  }

  /// Replace the split of a node by a hyperplane of larger gain, if there is one.
  void try_hyperplane(Node& node) {
    std::vector<std::int32_t> columns(table_.n_columns);
    std::iota(columns.begin(), columns.end(), 0);
    shuffle_columns(draw_key(node.key), columns);
    columns.resize(std::min(hyperplanes_.n_drawn, table_.n_columns));
    const std::uint32_t* row = row_.data() + node.begin;
    columns_.gather(grid_, row, node.n_rows(), columns);
    split::Direction direction = finder_.run(columns_, row, packed_);
    if (!direction.is_found()) return;
    const split::ProjectionCut cut = projections_.run(direction, columns_, row, packed_, node.sums);
    if (!(cut.score > search_.best_score())) return;
    node.split = {0, -1, false, cut.score - search_.parent_score(), cut.left};
    node.hyperplane = std::move(direction.hyperplane);
    node.threshold = cut.threshold;
  }

  /// The open node of largest gain, the oldest of equal ones; -1 if there is none.
  std::int64_t find_next() const {
    std::int64_t best = -1;
    for (std::size_t k = 0; k < node_.size(); ++k)
      if (node_[k].is_open() && (best < 0 || node_[k].split.gain > node_[best].split.gain))
        best = static_cast<std::int64_t>(k);
    return best;
  }

  /// Divide the rows of a node among two children, and find their splits if there may be more.
  void divide(std::int64_t number, bool goes_on) {
    const auto first = static_cast<std::int64_t>(node_.size());
    const Node parent = node_[number];
    node_[number].left = first;
    const std::int64_t middle = parent.begin + move_left(parent);
    node_.push_back(make_child(parent, false, parent.begin, middle, parent.split.left));
    node_.push_back(make_child(parent, true, middle, parent.end, parent.sums - parent.split.left));
    if (!goes_on || !can_split(node_[first])) return free_.push_back(parent.histogram);
    Node& left = node_[first];
    Node& right = node_[first + 1];
    Node& small = left.n_rows() <= right.n_rows() ? left : right;
    Node& large = left.n_rows() <= right.n_rows() ? right : left;
    small.histogram = take_histogram();
    large.histogram = parent.histogram;
    builder_.build(row_.data() + small.begin, small.n_rows(), packed_, pool_[small.histogram]);
    stats::subtract(pool_[large.histogram], pool_[small.histogram]);
    choose_split(left);
    choose_split(right);
  }

  /// Move the rows that go left to the front, all in their old order; returns their number.
  std::int64_t move_left(const Node& node) {
    if (!node.hyperplane.column.empty())
      return partition(node, [&](std::uint32_t row) {
        return node.hyperplane.project(grid_.row(row)) < node.threshold;
      });
    const std::uint8_t* bin = table_.bin + node.split.column;
    const int missing = table_.n_bins[node.split.column];
    return partition(node, [&](std::uint32_t row) {
      const int b = bin[row * table_.n_columns];
      return b == missing ? node.split.missing_left : b <= node.split.cut;
    });
  }

  template <class IsLeft>
  std::int64_t partition(const Node& node, const IsLeft& is_left) {
    std::uint32_t* row = row_.data() + node.begin;
    std::int64_t n_left = 0, n_right = 0;
    for (std::int64_t i = 0; i < node.n_rows(); ++i) {
      const std::uint32_t each = row[i];
      const bool goes_left = is_left(each);
      row[n_left] = each;
      spare_[n_right] = each;
      n_left += goes_left;
      n_right += !goes_left;
    }
    std::memcpy(row + n_left, spare_.data(), n_right * sizeof(std::uint32_t));
    return n_left;
  }

  const base::BinnedTable& table_;
  const base::GridTable& grid_;
  TreeSize size_;
  HyperplaneSettings hyperplanes_;
  stats::HistogramBuilder builder_;
  split::GainSearch search_;
  split::NodeColumns columns_;
  split::DirectionFinder finder_;
  split::ProjectionSearch projections_;
  const stats::Packed* packed_ = nullptr;
  std::vector<std::uint32_t> row_, spare_;
  std::vector<Node> node_;
  std::vector<stats::Histogram> pool_;
  std::vector<std::int64_t> free_;
};

}  // namespace lhtree::grow
