// The best splits of nodes by single columns: histograms, and the cuts of their bins.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/table.hpp"
#include "base/team.hpp"
#include "grow/node.hpp"
#include "old/stop.hpp"
#include "split/columns.hpp"
#include "stats/pool.hpp"

namespace lhtree::grow {

/// Chooses splits for a node, or for two siblings. A team shares the columns, or the rows of a
/// large node of few columns: else each thread would read all rows for some columns.
template <class Row, base::EncodedTable Table>
class ColumnSplits {
 public:
  using Sums = typename Row::Sums;

  ColumnSplits(const Table& table, const TreeSettings& settings, base::Team& team,
               const StopFlag& stop)
      : table_(table),
        settings_(settings),
        team_(team),
        pool_(table.layout.n_places(),
              std::max(least_pool, table.n_rows * table.layout.n_columns() / 8)) {
    lane_.reserve(team.size());
    for (std::int64_t k = 0; k < team.size(); ++k) lane_.emplace_back(table, settings, stop);
  }

  stats::HistogramPool<Row>& pool() { return pool_; }

  /// Nodes whose splits are chosen together: one, or two siblings.
  struct Pair {
    Node<Sums>* built;   // the node whose histogram is summed
    Node<Sums>* other;   // its sibling, null if there is none
    bool is_subtracted;  // the sibling has the histogram of their parent: subtract
  };

  void choose(const Pair& pair, const std::uint32_t* row, const Row* gradient) {
    row_ = row;
    gradient_ = gradient;
    const bool was_packed = make_room(pair);
    const bool by_rows = shares_rows(*pair.built);
    if (by_rows) sum_rows(*pair.built);
    const std::int64_t n_columns = table_.layout.n_columns();
    const std::int64_t n_wanted = count_steps(*pair.built);
    best_.assign(2 * n_wanted, {});
    team_.share(n_wanted, [&](std::int64_t part, std::int64_t lane) {
      const std::int64_t first = n_columns * part / n_wanted;
      const std::int64_t last = n_columns * (part + 1) / n_wanted;
      by_rows ? merge(*pair.built, first, last) : build(*pair.built, first, last, lane_[lane]);
      search(pair, was_packed, first, last, lane_[lane], best_.data() + 2 * part);
    });
    keep_best(*pair.built, 0);
    if (pair.other) keep_best(*pair.other, 1);
  }

 private:
  static constexpr std::int64_t least_pool = std::int64_t{1} << 22;  // bytes
  static constexpr std::int64_t small_step = 1 << 12;  // operations that are not worth a helper
  static constexpr std::int64_t least_part = 1 << 10;  // rows
  static constexpr std::int64_t columns_at_once =
      stats::HistogramBuilder<Row, Table>::columns_at_once;

  /// What a thread needs.
  struct alignas(64) Lane {
    Lane(const Table& table, const TreeSettings& settings, const StopFlag& stop)
        : builder(table, stop),
          columns(table.layout, settings.limits, settings.constraints, settings.hessian_of_row) {}
    stats::HistogramBuilder<Row, Table> builder;
    split::ColumnSearch<Row> columns;
    stats::Histogram<Row> sums;  // of its part of the rows
    bool has_sums = false;
  };

  std::int64_t count_groups() const {
    return (table_.layout.n_columns() + columns_at_once - 1) / columns_at_once;
  }

  std::int64_t count_steps(const Node<Sums>& node) const {
    const std::int64_t n_columns = table_.layout.n_columns();
    const bool is_small = node.n_rows() * n_columns + 2 * pool_.n_places() < small_step;
    return std::max(count_groups(), is_small ? 1 : std::min(n_columns, team_.size()));
  }

  bool shares_rows(const Node<Sums>& node) const {
    const std::int64_t least = std::max(4 * least_part, pool_.n_places() / 2);  // sums to merge
    return std::is_same_v<Table, base::DenseTable> && node.n_rows() >= least &&
           count_groups() < team_.size();
  }

  /// Have room for the histograms of nodes; returns whether that of their parent was packed.
  bool make_room(const Pair& pair) {
    const bool was_packed = pair.is_subtracted && pool_[pair.other->histogram].is_packed;
    for (const Node<Sums>* node : {pair.built, pair.other})
      if (node) pool_[node->histogram].make_room(pool_.n_places(), node->n_rows());
    return was_packed;
  }

  /// Each thread sums some of the rows.
  void sum_rows(const Node<Sums>& node) {
    if constexpr (std::is_same_v<Table, base::DenseTable>) {
      const std::int64_t n = node.n_rows(), n_columns = table_.layout.n_columns();
      const std::int64_t n_parts = std::max((n + Row::rows_per_word - 1) / Row::rows_per_word,
                                            std::min(n / least_part, 2 * team_.size()));
      for (Lane& lane : lane_) lane.has_sums = false;
      team_.share(n_parts, [&](std::int64_t part, std::int64_t number) {
        Lane& lane = lane_[number];
        if (!std::exchange(lane.has_sums, true)) {
          lane.sums.make_room(pool_.n_places(), n);
          lane.sums.clear(0, pool_.n_places());
        }
        const std::int64_t begin = n * part / n_parts, end = n * (part + 1) / n_parts;
        for (std::int64_t first = 0; first < n_columns; first += columns_at_once)
          lane.builder.add(row_ + node.begin + begin, end - begin, gradient_, first,
                           std::min(n_columns, first + columns_at_once), lane.sums);
      });
    }
  }

  void merge(const Node<Sums>& node, std::int64_t first, std::int64_t last) {
    const std::int64_t begin = table_.layout.start[first], end = table_.layout.start[last];
    stats::Histogram<Row>& result = pool_[node.histogram];
    result.clear(begin, end);
    for (const Lane& lane : lane_)
      if (lane.has_sums) result.add(lane.sums, begin, end);
  }

  void build(const Node<Sums>& node, std::int64_t first, std::int64_t last, Lane& lane) {
    lane.builder.build(row_ + node.begin, node.n_rows(), gradient_, node.sums, first, last,
                       pool_[node.histogram]);
  }

  void search(const Pair& pair, bool was_packed, std::int64_t first, std::int64_t last, Lane& lane,
              split::Split<Sums>* best) {
    search_node(*pair.built, first, last, lane, best[0]);
    if (!pair.other) return;
    const Node<Sums>& other = *pair.other;
    const std::vector<std::int64_t>& start = table_.layout.start;
    if (pair.is_subtracted)
      pool_[other.histogram].subtract(pool_[pair.built->histogram], was_packed, start[first],
                                      start[last]);
    else
      build(other, first, last, lane);
    search_node(other, first, last, lane, best[1]);
  }

  void search_node(const Node<Sums>& node, std::int64_t first, std::int64_t last, Lane& lane,
                   split::Split<Sums>& best) {
    const bool is_monotone = settings_.constraints.is_monotone();
    const split::StepBounds* bounds = is_monotone ? &node.freedom.bounds : nullptr;
    const double least = split::compute_least_score(node.sums, settings_.limits, bounds);
    const std::uint8_t* takes_part = node.takes_part.empty() ? nullptr : node.takes_part.data();
    best.score = least;
    lane.columns.run(pool_[node.histogram], node.sums, first, last, takes_part, bounds, best);
    if (best.score == least && best.column < 0) best.score = 0.0;
  }

  /// Give a node the best split of all steps, the first of equal ones.
  void keep_best(Node<Sums>& node, int side) {
    for (std::size_t k = side; k < best_.size(); k += 2)
      if (best_[k].score > node.split.score) node.split = std::move(best_[k]);
  }

  const Table& table_;
  const TreeSettings& settings_;
  base::Team& team_;
  stats::HistogramPool<Row> pool_;
  std::vector<Lane> lane_;
  std::vector<split::Split<Sums>> best_;
  const std::uint32_t* row_ = nullptr;
  const Row* gradient_ = nullptr;
};

}  // namespace lhtree::grow
