// A table of which most values are zero, and how its columns are read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "node.hpp"
#include "stop.hpp"

namespace lhtree {

/// The values that are not zero, by rows and again by columns, both ascending.
struct SparseTable {
  std::int64_t n_rows, n_columns;
  bool by_columns;                 // whether nodes draw few columns; see Rules::is_dense
  const std::int64_t* row_start;   // [n_rows + 1]
  const std::int32_t* row_column;  // [n_values]
  const double* row_value;         // [n_values]
  std::vector<std::int64_t> column_start;
  std::vector<std::uint32_t> column_row;
  std::vector<double> column_value;

  SparseTable(const std::int64_t* start, const std::int32_t* column, const double* value,
              std::int64_t n_rows, std::int64_t n_columns, bool by_columns)
      : n_rows(n_rows),
        n_columns(n_columns),
        by_columns(by_columns),
        row_start(start),
        row_column(column),
        row_value(value),
        column_start(n_columns + 1, 0),
        column_row(start[n_rows]),
        column_value(start[n_rows]) {
    for (std::int64_t k = 0; k < start[n_rows]; ++k) ++column_start[column[k] + 1];
    for (std::int64_t j = 0; j < n_columns; ++j) column_start[j + 1] += column_start[j];
    std::vector<std::int64_t> next(column_start.begin(), column_start.end() - 1);
    for (std::int64_t i = 0; i < n_rows; ++i)
      for (std::int64_t k = start[i]; k < start[i + 1]; ++k) {
        const std::int64_t to = next[column[k]]++;
        column_row[to] = static_cast<std::uint32_t>(i);
        column_value[to] = value[k];
      }
  }
};

/// Reads columns of a node's rows from a sparse table.
class SparseReader {
 public:
  explicit SparseReader(const SparseTable& table)
      : table_(table), place_(table.n_rows, 0), node_(table.n_columns, 0) {}

  std::int64_t n_columns() const { return table_.n_columns; }
  bool misses(std::int64_t) const { return false; }
  static constexpr bool reads_parts = false;

  /// Look at the rows of another node.
  void start(const NodeRows& rows) {
    rows_ = rows;
    ++number_;
    const std::int64_t n = rows.size();
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t row = row_at(i);
      place_[row] = static_cast<std::uint32_t>(i);
      for (std::int64_t k = table_.row_start[row]; k < table_.row_start[row + 1]; ++k)
        node_[table_.row_column[k]] = number_;
    }
  }

  /// False if the column is zero in all rows of the node.
  bool has_values(std::int64_t j) const { return node_[j] == number_; }

  /// Write the column's values in the rows of the node, targets first.
  void gather(std::int64_t j, double* value) const {
    std::fill_n(value, rows_.size(), 0.0);
    visit(j, [&](std::int64_t i, double x) { value[i] = x; });
  }

  /// Call visit(place, value) for each row of the node whose value is not zero.
  template <class Visit>
  void visit(std::int64_t j, const Visit& visit) const {
    const auto n = static_cast<std::uint32_t>(rows_.size());
    for (std::int64_t k = table_.column_start[j]; k < table_.column_start[j + 1]; ++k) {
      const std::uint32_t row = table_.column_row[k], place = place_[row];
      // A row that is not in the node has an old place, where another row is.
      if (place < n && row_at(place) == row) visit(place, table_.column_value[k]);
    }
  }

 private:
  std::uint32_t row_at(std::int64_t i) const {
    return i < rows_.target.size ? rows_.target.row[i] : rows_.rest.row[i - rows_.target.size];
  }

  const SparseTable& table_;
  NodeRows rows_{};
  std::vector<std::uint32_t> place_;  // [n_rows] of a row in the node
  std::vector<std::uint64_t> node_;   // [n_columns] the last node in which it had a value
  std::uint64_t number_ = 0;          // of the node at hand
};

}  // namespace lhtree
