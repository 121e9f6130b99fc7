// A dense encoded table, column after column: nodes of forests read a few of its columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/table.hpp"
#include "old/parallel.hpp"
#include "old/pages.hpp"

namespace lhtree::base {

/// Bins, and values on the grid where hyperplanes need them, in memory of its own. A column of many
/// rows is small enough for a fast cache, where the rows of a table are not.
class ColumnTable {
 public:
  const Layout& layout;
  std::int64_t n_rows;

  /// Turn a table by rows.
  ColumnTable(const DenseTable& rows, bool needs_values, std::int64_t n_threads, const Poll& poll)
      : layout(rows.layout), n_rows(rows.n_rows) {
    const std::int64_t n = layout.n_columns() * n_rows;
    bins_.resize(n);
    values_.resize(needs_values ? n : 0);
    use_large_pages(bins_);
    use_large_pages(values_);
    run_tasks((n_rows + block - 1) / block, n_threads,
              [&](std::int64_t k, const StopFlag&) {
                turn(rows, k * block, std::min(n_rows, (k + 1) * block));
              },
              poll);
  }

  std::uint8_t bin(std::int64_t row, std::int64_t column) const {
    return bins_[column * n_rows + row];
  }
  void prefetch_bins(std::int64_t) const {}  // they are near

  void gather(std::int64_t row, const std::int32_t* column, std::int64_t n,
              std::int32_t* result) const {
    for (std::int64_t k = 0; k < n; ++k) result[k] = values_[column[k] * n_rows + row];
  }
  void gather_columns(const std::uint32_t* row, std::int64_t n, const std::int32_t* column,
                      std::int64_t p, std::int32_t* result, std::int64_t stride) const {
    for (std::int64_t k = 0; k < p; ++k) {
      const std::int32_t* from = values_.data() + column[k] * n_rows;
      std::int32_t* to = result + k * stride;
      for (std::int64_t i = 0; i < n; ++i) to[i] = from[row[i]];
    }
  }

 private:
  static constexpr std::int64_t block = 256;  // rows that are turned at once

  void turn(const DenseTable& rows, std::int64_t begin, std::int64_t end) {
    const std::int64_t m = layout.n_columns();
    constexpr std::int64_t few = 64;  // columns of a line of the cache
    for (std::int64_t first = 0; first < m; first += few)
      for (std::int64_t i = begin; i < end; ++i) {
        const std::uint8_t* from = rows.bins_of(i);
        for (std::int64_t j = first; j < std::min(m, first + few); ++j)
          bins_[j * n_rows + i] = from[j];
      }
    if (values_.empty()) return;
    std::uint32_t row[block];
    std::iota(row, row + (end - begin), static_cast<std::uint32_t>(begin));
    std::int32_t column[most_gathered];
    for (std::int64_t first = 0; first < m; first += most_gathered) {
      const std::int64_t p = std::min(m - first, most_gathered);
      std::iota(column, column + p, static_cast<std::int32_t>(first));
      rows.gather_columns(row, end - begin, column, p, values_.data() + first * n_rows + begin,
                          n_rows);
    }
  }

  PageVector<std::uint8_t> bins_;    // [n_columns, n_rows]
  PageVector<std::int32_t> values_;  // the same, on the grid
};

}  // namespace lhtree::base
