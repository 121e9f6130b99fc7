// Columns of the rows of a node, some rows at a time: a node may have all rows of a table.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/grid.hpp"
#include "base/instructions.hpp"
#include "base/table.hpp"
#include "old/pages.hpp"
#include "split/split.hpp"

namespace lhtree::split {

constexpr int direction_bits = 12;  // of a column about its mean in the node

/// Rows of a node that a thread looks at together, and what it noted of those it has seen.
struct ColumnBatch {
  struct Facts {
    std::int64_t sum = 0, weight = 0, n_gaps = 0;
    std::int32_t low = std::numeric_limits<std::int32_t>::max(), high = base::gap;

    void operator+=(const Facts& other) {
      sum += other.sum;
      weight += other.weight;
      n_gaps += other.n_gaps;
      low = std::min(low, other.low);
      high = std::max(high, other.high);
    }
  };

  std::int64_t n = 0;              // rows
  std::int32_t* values = nullptr;  // column after column
  PageVector<std::int32_t> own;    // where they are if the node does not keep them
  PageVector<std::int16_t> centered;
  std::vector<Facts> facts;  // of the columns drawn
};

/// The columns that a node drew. First look at all its rows, batch by batch, then `choose` the
/// columns with two values; after that a batch has their values, gaps filled, and these about
/// their means in few bits. The values of all rows are kept unless they are too many. Threads may
/// look at batches side by side, each with a batch of its own.
class NodeColumns {
 public:
  static constexpr std::int64_t most_rows = 1
                                            << 11;  // of a batch; its columns stay in a fast cache

  /// Keep at most so many values.
  explicit NodeColumns(std::int64_t most_kept) : most_kept_(most_kept) {}

  /// Draw columns for a node of n rows.
  void start(const std::vector<std::int32_t>& columns, std::int64_t n,
             std::vector<ColumnBatch>& batches) {
    drawn_ = columns;
    n_ = n;
    const auto p = static_cast<std::int64_t>(columns.size());
    is_kept_ = n <= most_rows || n * p <= most_kept_;
    remake(z_, is_kept_ ? p * n : 0);
    for (ColumnBatch& batch : batches) batch.facts.clear();
  }

  /// Look at n rows, the first of which is number `begin` of the node. `weight` is null where all
  /// are one.
  template <base::EncodedTable Table>
  void look_at(const Table& table, const std::uint32_t* row, std::int64_t begin, std::int64_t n,
               const std::int64_t* weight, ColumnBatch& batch) {
    go_to(begin, n, batch);
    const auto p = static_cast<std::int64_t>(drawn_.size());
    table.gather_columns(row, n, drawn_.data(), p, batch.values, n);
    batch.facts.resize(p);
    for (std::int64_t k = 0; k < p; ++k) {
      const std::int32_t* z = batch.values + k * n;
      batch.facts[k] += weight ? sum_weighted(z, n, weight) : sum(z, n);
    }
  }

  /// Keep the columns with two values.
  void choose(const base::Layout& layout, const std::vector<ColumnBatch>& batches) {
    for (auto* list : {&column_, &center_, &fill_, &slot_}) list->clear();
    shift_.clear();
    has_gaps_.clear();
    for (std::size_t k = 0; k < drawn_.size(); ++k) {
      ColumnBatch::Facts facts;
      for (const ColumnBatch& batch : batches)
        if (!batch.facts.empty()) facts += batch.facts[k];
      if (facts.weight == 0 || facts.low == facts.high) continue;
      const std::int64_t mean = floor_divide(2 * facts.sum + facts.weight, 2 * facts.weight);
      const std::int64_t largest = std::max(facts.high - mean, mean - facts.low);
      const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(largest)));
      const base::ColumnInfo& column = layout.column[drawn_[k]];
      slot_.push_back(static_cast<std::int32_t>(is_kept_ ? k : column_.size()));
      column_.push_back(drawn_[k]);
      center_.push_back(static_cast<std::int32_t>(mean));
      fill_.push_back(column.has_gaps ? center_.back() : column.fill);
      has_gaps_.push_back(facts.n_gaps > 0);
      shift_.push_back(std::max(0, bits - direction_bits));
    }
  }

  /// Have the columns of n rows, the first of which is number `begin`, and write them about the
  /// means. Rows that are kept have no gaps after that.
  template <base::EncodedTable Table>
  void load_all(const Table& table, const std::uint32_t* row, std::int64_t begin, std::int64_t n,
                ColumnBatch& batch) {
    load(table, row, begin, n, 0, size(), batch);
    if (is_kept_) fill_gaps(0, size(), batch);
    center_all(batch);
  }

  /// Have the columns from `first` to `last` of rows that were loaded before.
  template <base::EncodedTable Table>
  void load(const Table& table, const std::uint32_t* row, std::int64_t begin, std::int64_t n,
            std::int64_t first, std::int64_t last, ColumnBatch& batch) {
    go_to(begin, n, batch);
    if (is_kept_) return;
    table.gather_columns(row, n, column_.data() + first, last - first, batch.values + first * n, n);
    fill_gaps(first, last, batch);
  }

  std::int64_t size() const { return static_cast<std::int64_t>(column_.size()); }
  std::int32_t column(std::int64_t k) const { return column_[k]; }
  std::int32_t center(std::int64_t k) const { return center_[k]; }
  std::int32_t fill(std::int64_t k) const { return fill_[k]; }
  int shift(std::int64_t k) const { return shift_[k]; }
  const std::int32_t* z(std::int64_t k, const ColumnBatch& batch) const {
    return batch.values + slot_[k] * batch.n;
  }
  static const std::int16_t* centered(std::int64_t k, const ColumnBatch& batch) {
    return batch.centered.data() + k * batch.n;
  }

 private:
  using Facts = ColumnBatch::Facts;

  /// Go to a batch of n rows.
  void go_to(std::int64_t begin, std::int64_t n, ColumnBatch& batch) {
    const auto p = static_cast<std::int64_t>(drawn_.size());
    batch.n = n;
    if (!is_kept_ && static_cast<std::int64_t>(batch.own.size()) < p * n) remake(batch.own, p * n);
    batch.values = is_kept_ ? z_.data() + begin * p : batch.own.data();
  }

  /// Write the rows of a batch about the means.
  void center_all(ColumnBatch& batch) const {
    const std::int64_t n = batch.n;
    const auto n_values = static_cast<std::size_t>(size() * n);
    if (batch.centered.size() < n_values) remake(batch.centered, n_values);
    for (std::int64_t k = 0; k < size(); ++k) {
      const std::int32_t* from = z(k, batch);
      std::int16_t* centered = batch.centered.data() + k * n;
      const std::int32_t center = center_[k];
      const int shift = shift_[k];
      base::run_wide([=]() LHTREE_FLAT {
        for (std::int64_t i = 0; i < n; ++i)
          centered[i] = static_cast<std::int16_t>((from[i] - center) >> shift);
      });
    }
  }

  void fill_gaps(std::int64_t first, std::int64_t last, ColumnBatch& batch) const {
    const std::int64_t n = batch.n;
    for (std::int64_t k = first; k < last; ++k) {
      if (!has_gaps_[k]) continue;
      std::int32_t* own = batch.values + slot_[k] * n;
      const std::int32_t center = center_[k];
      base::run_wide([=]() LHTREE_FLAT {
        for (std::int64_t i = 0; i < n; ++i) own[i] = own[i] == base::gap ? center : own[i];
      });
    }
  }

  static Facts sum(const std::int32_t* z, std::int64_t n) {
    Facts facts;
    Facts* result = &facts;
    base::run_wide([=]() LHTREE_FLAT {
      // As unsigned numbers less that of the lowest value, gaps are above all others.
      constexpr std::uint32_t first = 0x80000001u;
      std::uint32_t low = 0xFFFFFFFFu;
      std::int32_t high = base::gap, n_gaps = 0;
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < n; ++i)
        low = std::min(low, static_cast<std::uint32_t>(z[i]) - first);
      for (std::int64_t i = 0; i < n; ++i) high = std::max(high, z[i]);
      for (std::int64_t i = 0; i < n; ++i) n_gaps += z[i] == base::gap;
      for (std::int64_t i = 0; i < n; ++i) sum += z[i] == base::gap ? 0 : z[i];
      *result = {sum, n - n_gaps, n_gaps, static_cast<std::int32_t>(low + first), high};
    });
    if (facts.weight == 0) facts.low = std::numeric_limits<std::int32_t>::max();
    return facts;
  }

  static Facts sum_weighted(const std::int32_t* z, std::int64_t n, const std::int64_t* weight) {
    Facts facts;
    for (std::int64_t i = 0; i < n; ++i) {
      if (z[i] == base::gap) {
        ++facts.n_gaps;
        continue;
      }
      facts.sum += weight[i] * z[i];
      facts.weight += weight[i];
      facts.low = std::min(facts.low, z[i]);
      facts.high = std::max(facts.high, z[i]);
    }
    return facts;
  }

  static std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); }

  std::int64_t most_kept_, n_ = 0;
  bool is_kept_ = true;
  std::vector<std::int32_t> drawn_;                          // wanted
  std::vector<std::int32_t> column_, center_, fill_, slot_;  // with two values; where they are
  std::vector<int> shift_;
  std::vector<std::uint8_t> has_gaps_;
  PageVector<std::int32_t> z_;  // of all rows, if they are kept
};

}  // namespace lhtree::split
