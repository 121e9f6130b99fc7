// Sums of gradients and hessians by bin: exact integers, in any order of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/table.hpp"
#include "old/stop.hpp"
#include "stats/sums.hpp"

namespace lhtree::stats {

/// Sums of the bins of all columns, column after column; see Layout::start.
template <class Row>
using Histogram = std::vector<typename Row::Sums>;

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
    const base::Layout& layout = table_.layout;
    std::fill(result.begin() + layout.start[first], result.begin() + layout.start[last], Sums{});
    if constexpr (std::is_same_v<Table, base::DenseTable>) {
      for (std::int64_t begin = 0; begin < n && !stop_; begin += Row::rows_per_word) {
        add_rows(row + begin, std::min(Row::rows_per_word, n - begin), gradient, first, last);
        for (std::int64_t j = first; j < last; ++j) empty_words(first, j, result);
      }
    } else {
      add_entries(row, n, gradient, whole, first, last, result);
    }
  }

 private:
  // One line of the cache more than a column has: else the same bins of all columns, such as
  // that of a frequent zero, would compete for the same place in it.
  static constexpr std::int64_t stride = base::most_codes + 8;

  /// Add the words of a column to its sums.
  void empty_words(std::int64_t first, std::int64_t column, Histogram<Row>& result) {
    Row* word = words_.data() + (column - first) * stride;
    Sums* sums = result.data() + table_.layout.start[column];
    const std::int64_t n = table_.layout.start[column + 1] - table_.layout.start[column];
    for (std::int64_t k = 0; k < n; ++k) {
      word[k].add_to(sums[k]);
      word[k] = Row{};
    }
  }

  void add_rows(const std::uint32_t* row, std::int64_t n, const Row* gradient, std::int64_t first,
                std::int64_t last) {
    constexpr std::int64_t ahead = 16;
    const std::int64_t n_columns = last - first;
    for (std::int64_t i = 0; i < n; ++i) {
      if (i + ahead < n) base::prefetch(table_.bins_of(row[i + ahead]) + first);
      const Row each = gradient[row[i]];
      const std::uint8_t* bin = table_.bins_of(row[i]) + first;
      Row* word = words_.data();
      std::int64_t j = 0;
      for (; j + 4 <= n_columns; j += 4, word += 4 * stride) {
        word[bin[j]] += each;
        word[stride + bin[j + 1]] += each;
        word[2 * stride + bin[j + 2]] += each;
        word[3 * stride + bin[j + 3]] += each;
      }
      for (; j < n_columns; ++j, word += stride) word[bin[j]] += each;
    }
  }

  /// Sum the stored entries; what is left of the whole is zero.
  void add_entries(const std::uint32_t* row, std::int64_t n, const Row* gradient, const Sums& whole,
                   std::int64_t first, std::int64_t last, Histogram<Row>& result) {
    const base::Layout& layout = table_.layout;
    for (std::int64_t i = 0; i < n && !stop_; ++i) {
      const std::int32_t* end = table_.column + table_.start[row[i] + 1];
      const std::int32_t* entry =
          std::lower_bound(table_.column + table_.start[row[i]], end, first);
      for (; entry != end && *entry < last; ++entry)
        gradient[row[i]].add_to(result[layout.start[*entry] + table_.bins[entry - table_.column]]);
    }
    for (std::int64_t j = first; j < last; ++j) {
      Sums rest = whole;
      for (std::int64_t k = layout.start[j]; k < layout.start[j + 1]; ++k) rest -= result[k];
      result[layout.start[j] + layout.column[j].zero_bin] += rest;
    }
  }

  const Table& table_;
  const StopFlag& stop_;
  std::vector<Row> words_;
};

}  // namespace lhtree::stats
