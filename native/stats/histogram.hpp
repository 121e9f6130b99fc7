// Sums of gradients and hessians by bin: exact integers, in any order of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/table.hpp"
#include "old/pages.hpp"
#include "old/stop.hpp"
#include "stats/sums.hpp"

namespace lhtree::stats {

/// Sums of the bins of all columns, column after column; see Layout::start. Those of few rows are
/// packed: they take half the memory, and less time.
template <class Row>
struct Histogram {
  using Sums = typename Row::Sums;

  PageVector<Sums> sums;
  PageVector<Row> words;  // in their place if they are packed
  bool is_packed = false;

  /// Have room for the sums of n rows; they are not set.
  void make_room(std::int64_t n_places, std::int64_t n_rows) {
    is_packed = Row::is_packed && n_rows <= Row::rows_per_word;
    is_packed ? words.resize(n_places) : sums.resize(n_places);
  }

  /// Begin with nothing in the places from `begin` to `end`.
  void clear(std::int64_t begin, std::int64_t end) {
    is_packed ? std::fill(words.begin() + begin, words.begin() + end, Row{})
              : std::fill(sums.begin() + begin, sums.begin() + end, Sums{});
  }

  /// Add the sums of other rows, packed or not like these.
  void add(const Histogram& part, std::int64_t begin, std::int64_t end) {
    if (is_packed)
      for (std::int64_t k = begin; k < end; ++k) words[k] += part.words[k];
    else
      for (std::int64_t k = begin; k < end; ++k) sums[k] += part.sums[k];
  }

  /// What is left of these sums, which were packed or not, after those of some of the rows.
  void subtract(const Histogram& part, bool was_packed, std::int64_t first, std::int64_t last) {
    if constexpr (Row::is_packed) {
      if (was_packed) {
        for (std::int64_t k = first; k < last; ++k) words[k] -= part.words[k];
        return;
      }
      if (is_packed || part.is_packed) return subtract_mixed(part, first, last);
    }
    for (std::int64_t k = first; k < last; ++k) sums[k] -= part.sums[k];
  }

 private:
  void subtract_mixed(const Histogram& part, std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) {
      sums[k] -= part.is_packed ? part.words[k].unpack() : part.sums[k];
      if (is_packed) words[k] = Row::pack(sums[k]);
    }
  }
};

/// Adds rows of a node to a histogram, for some columns at a time.
template <class Row, base::EncodedTable Table>
class HistogramBuilder {
 public:
  using Sums = typename Row::Sums;

  /// Building ends early, with wrong sums, once `stop` is set.
  HistogramBuilder(const Table& table, const StopFlag& stop) : table_(table), stop_(stop) {
    words_.resize(columns_at_once * stride);
  }

  /// Columns that one call should have at most.
  static constexpr std::int64_t columns_at_once = 64;  // 132 kB of words stay in a fast cache

  /// Sum the rows listed, whose gradients are `gradient[row]`, for the columns from `first` to
  /// `last`. `whole` is the sum over all of them.
  void build(const std::uint32_t* row, std::int64_t n, const Row* gradient, const Sums& whole,
             std::int64_t first, std::int64_t last, Histogram<Row>& result) {
    result.clear(table_.layout.start[first], table_.layout.start[last]);
    if constexpr (std::is_same_v<Table, base::DenseTable>)
      add(row, n, gradient, first, last, result);
    else if (result.is_packed)
      add_packed_entries(row, n, gradient, whole, first, last, result);
    else
      add_entries(row, n, gradient, whole, first, last, result.sums.data());
  }

  /// Add more rows of a dense table.
  void add(const std::uint32_t* row, std::int64_t n, const Row* gradient, std::int64_t first,
           std::int64_t last, Histogram<Row>& result) {
    const std::int64_t* start = table_.layout.start.data();
    if (result.is_packed)
      return add_rows(
          row, n, gradient, first, last, [=](std::int64_t j) { return start[j]; },
          result.words.data());
    for (std::int64_t i = 0; i < n && !stop_; i += Row::rows_per_word) {
      const auto column_start = [&](std::int64_t j) { return (j - first) * stride; };
      add_rows(row + i, std::min(Row::rows_per_word, n - i), gradient, first, last, column_start,
               words_.data());
      for (std::int64_t j = first; j < last; ++j) empty_words(first, j, result);
    }
  }

 private:
  // One line of the cache more than a column has: else the same bins of all columns, such as
  // that of a frequent zero, would compete for the same place in it.
  static constexpr std::int64_t stride = base::most_codes + 8;

  /// Add the words of a column to its sums.
  void empty_words(std::int64_t first, std::int64_t column, Histogram<Row>& result) {
    Row* word = words_.data() + (column - first) * stride;
    Sums* sums = result.sums.data() + table_.layout.start[column];
    const std::int64_t n = table_.layout.column[column].n_bins + 1;
    for (std::int64_t k = 0; k < n; ++k) {
      word[k].add_to(sums[k]);
      word[k] = Row{};
    }
  }

  void add_packed_entries(const std::uint32_t* row, std::int64_t n, const Row* gradient,
                          const Sums& whole, std::int64_t first, std::int64_t last,
                          Histogram<Row>& result) {
    if constexpr (Row::is_packed)
      add_entries(row, n, gradient, Row::pack(whole), first, last, result.words.data());
  }

  /// Add rows to the words of columns; those of column j begin at start(j).
  template <class Start>
  void add_rows(const std::uint32_t* row, std::int64_t n, const Row* gradient, std::int64_t first,
                std::int64_t last, const Start& start, Row* words) const {
    constexpr std::int64_t ahead = 16;
    for (std::int64_t i = 0; i < n; ++i) {
      if (i + ahead < n) base::prefetch(table_.bins_of(row[i + ahead]) + first);
      const Row each = gradient[row[i]];
      const std::uint8_t* bin = table_.bins_of(row[i]);
      std::int64_t j = first;
      for (; j + 4 <= last; j += 4) {
        words[start(j) + bin[j]] += each;
        words[start(j + 1) + bin[j + 1]] += each;
        words[start(j + 2) + bin[j + 2]] += each;
        words[start(j + 3) + bin[j + 3]] += each;
      }
      for (; j < last; ++j) words[start(j) + bin[j]] += each;
    }
  }

  static void add(const Row& row, Sums& sums) { row.add_to(sums); }
  static void add(const Row& row, Row& word) { word += row; }

  /// Sum the stored entries; what is left of the whole is zero.
  template <class Cell>
  void add_entries(const std::uint32_t* row, std::int64_t n, const Row* gradient, const Cell& whole,
                   std::int64_t first, std::int64_t last, Cell* result) {
    const base::Layout& layout = table_.layout;
    for (std::int64_t i = 0; i < n && !stop_; ++i) {
      const std::int32_t* end = table_.column + table_.start[row[i] + 1];
      const std::int32_t* entry =
          std::lower_bound(table_.column + table_.start[row[i]], end, first);
      for (; entry != end && *entry < last; ++entry)
        add(gradient[row[i]], result[layout.start[*entry] + table_.bins[entry - table_.column]]);
    }
    for (std::int64_t j = first; j < last; ++j) {
      Cell rest = whole;
      for (std::int64_t k = layout.start[j]; k < layout.start[j + 1]; ++k) rest -= result[k];
      result[layout.start[j] + layout.column[j].zero_bin] += rest;
    }
  }

  const Table& table_;
  const StopFlag& stop_;
  std::vector<Row> words_;
};

}  // namespace lhtree::stats
