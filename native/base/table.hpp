// Encoded tables as trees see them: dense, or with a bin and a value for each stored entry.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bins.hpp"
#include "base/instructions.hpp"
#include "base/raw_rows.hpp"

namespace lhtree::base {

/// What growing a tree needs to know of a column.
struct ColumnInfo {
  int n_bins = 1;  // of present values; the next one holds missing values
  bool is_category = false;
  bool has_gaps = false;
  std::int32_t fill = 0;      // what a missing value counts as where the column has no gaps
  std::uint8_t zero_bin = 0;  // of the absent values of a sparse column, and their grid value:
  std::int32_t zero_z = 0;    // not 0 if all training rows lie on one side of zero
};

/// The columns of a table, and where the bins of each start in a histogram.
struct Layout {
  std::vector<ColumnInfo> column;
  std::vector<std::int64_t> start;  // [n_columns + 1]

  explicit Layout(std::vector<ColumnInfo> columns) : column(std::move(columns)), start(1, 0) {
    for (const ColumnInfo& each : column)
      start.push_back(start.back() + each.n_bins + 1 + (each.n_bins >= many_bins ? line : 0));
  }
  std::int64_t n_columns() const { return static_cast<std::int64_t>(column.size()); }
  std::int64_t n_places() const { return start.back(); }

 private:
  // Columns with all bins are a line of the cache apart: else the same bins of all of them, such
  // as that of a frequent zero, would compete for the same place in it.
  static constexpr int many_bins = 200, line = 8;
};

constexpr std::int64_t most_gathered = 128;  // columns of a hyperplane

/// Turn rows of p values, which gather(i, values) writes for i = 0 ... n - 1, into columns.
template <class Gather>
void gather_blocks(std::int64_t n, std::int64_t p, std::int32_t* result, std::int64_t stride,
                   const Gather& gather) {
  constexpr std::int64_t block = 16;  // values of a column that fill a line of the cache
  std::int32_t values[block][most_gathered];
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t m = std::min(block, n - begin);
    for (std::int64_t i = 0; i < m; ++i) gather(begin + i, values[i]);
    for (std::int64_t k = 0; k < p; ++k)
      for (std::int64_t i = 0; i < m; ++i) result[k * stride + begin + i] = values[i][k];
  }
}

/// Row after row; a view. Hyperplanes need the values on the grid, or the raw rows from which they
/// are computed.
struct DenseTable {
  const Layout& layout;
  std::int64_t n_rows = 0;
  const std::uint8_t* bins = nullptr;    // [n_rows, n_columns]
  const std::int32_t* values = nullptr;  // on the grid; null if they are not stored
  const RawRows* raw = nullptr;          // read where they are not

  const std::uint8_t* bins_of(std::int64_t row) const { return bins + row * layout.n_columns(); }
  const std::int32_t* values_of(std::int64_t row) const {
    return values + row * layout.n_columns();
  }
  std::uint8_t bin(std::int64_t row, std::int64_t column) const { return bins_of(row)[column]; }
  void prefetch_bins(std::int64_t row) const { prefetch(bins_of(row)); }

  /// The values of some columns in a row.
  void gather(std::int64_t row, const std::int32_t* column, std::int64_t n,
              std::int32_t* result) const {
    if (!values) return raw->gather(row, column, n, result);
    const std::int32_t* z = values_of(row);
    for (std::int64_t k = 0; k < n; ++k) result[k] = z[column[k]];
  }

  /// The values of p columns in n rows, column after column, each from `stride` times its number.
  void gather_columns(const std::uint32_t* row, std::int64_t n, const std::int32_t* column,
                      std::int64_t p, std::int32_t* result, std::int64_t stride) const {
    if (!values) return raw->gather_columns(row, n, column, p, result, stride);
    for (std::int64_t begin = 0; begin < n; begin += block) {
      const std::int64_t m = std::min(block, n - begin);
      std::int64_t start[block];
      for (std::int64_t i = 0; i < m; ++i) {
        if (begin + i + block < n) prefetch_values(row[begin + i + block]);
        start[i] = row[begin + i] * layout.n_columns();
      }
      for (std::int64_t k = 0; k < p; ++k) {
        const std::int32_t* from = values + column[k];
        std::int32_t* to = result + k * stride + begin;
        for (std::int64_t i = 0; i < m; ++i) to[i] = from[start[i]];
      }
    }
  }

 private:
  static constexpr std::int64_t block = 16;  // rows whose values stay in the fastest cache

  void prefetch_values(std::int64_t row) const {
    constexpr std::int64_t line = 16, most = 16 * line;  // values of a line of the cache
    const std::int64_t n = std::min(layout.n_columns(), most);
    for (std::int64_t j = 0; j < n; j += line) prefetch(values_of(row) + j);
  }
};

/// Stored entries row after row, columns ascending; all others are zero.
struct SparseTable {
  const Layout& layout;
  std::int64_t n_rows = 0;
  const std::int64_t* start = nullptr;   // [n_rows + 1]
  const std::int32_t* column = nullptr;  // [n_entries]
  const std::uint8_t* bins = nullptr;    // [n_entries]
  const std::int32_t* values = nullptr;  // [n_entries]

  std::uint8_t bin(std::int64_t row, std::int64_t j) const {
    const std::int64_t place = look_up(row, j);
    return place < 0 ? layout.column[j].zero_bin : bins[place];
  }
  void prefetch_bins(std::int64_t row) const { prefetch(bins + start[row]); }
  /// Call visit(column, bin) for the stored entries of a row.
  template <class Visit>
  void visit_entries(std::int64_t row, const Visit& visit) const {
    for (std::int64_t k = start[row]; k < start[row + 1]; ++k) visit(column[k], bins[k]);
  }

  void gather(std::int64_t row, const std::int32_t* wanted, std::int64_t n,
              std::int32_t* result) const {
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t place = look_up(row, wanted[k]);
      result[k] = place < 0 ? layout.column[wanted[k]].zero_z : values[place];
    }
  }
  void gather_columns(const std::uint32_t* row, std::int64_t n, const std::int32_t* wanted,
                      std::int64_t p, std::int32_t* result, std::int64_t stride) const {
    std::pair<std::int32_t, std::int64_t> sorted[most_gathered];  // columns, and where they go
    std::int32_t zero[most_gathered];
    for (std::int64_t k = 0; k < p; ++k) {
      sorted[k] = {wanted[k], k};
      zero[k] = layout.column[wanted[k]].zero_z;
    }
    std::sort(sorted, sorted + p);
    gather_blocks(n, p, result, stride, [&](std::int64_t i, std::int32_t* z) {
      std::copy_n(zero, p, z);
      const std::int32_t *here = column + start[row[i]], *end = column + start[row[i] + 1];
      for (std::int64_t k = 0; k < p && here != end;) {  // both are ascending
        if (*here == sorted[k].first)
          z[sorted[k++].second] = values[here++ - column];
        else if (*here < sorted[k].first)
          here = p < few_wanted ? std::lower_bound(here, end, sorted[k].first) : here + 1;
        else
          ++k;
      }
    });
  }

 private:
  static constexpr std::int64_t few_wanted = 16;  // columns that are worth a search each

  std::int64_t look_up(std::int64_t row, std::int64_t j) const {
    const std::int32_t* end = column + start[row + 1];
    const std::int32_t* found = std::lower_bound(column + start[row], end, j);
    return found != end && *found == j ? found - column : -1;
  }
};

/// What all tables offer.
template <class T>
concept EncodedTable = requires(const T& table, std::int64_t i, const std::uint32_t* rows,
                                const std::int32_t* columns, std::int32_t* result) {
  { table.layout } -> std::convertible_to<const Layout&>;
  { table.n_rows } -> std::convertible_to<std::int64_t>;
  { table.bin(i, i) } -> std::same_as<std::uint8_t>;
  table.gather(i, columns, i, result);
  table.gather_columns(rows, i, columns, i, result, i);
  table.prefetch_bins(i);
};

}  // namespace lhtree::base
