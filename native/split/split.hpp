// A split of a node: by bins of a column, by some of its categories, or by a hyperplane.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/grid.hpp"
#include "base/table.hpp"

namespace lhtree::split {

constexpr int most_terms = 128;

/// Integer weights of some columns, and what a missing value of each counts as.
struct Hyperplane {
  std::vector<std::int32_t> column, weight, fill;

  bool is_empty() const { return column.empty(); }
  std::int64_t n_terms() const { return static_cast<std::int64_t>(column.size()); }

  /// The projection of values of its columns, gaps filled.
  std::int64_t project(const std::int32_t* z) const {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < column.size(); ++k)
      sum += std::int64_t{weight[k]} * (z[k] == base::gap ? fill[k] : z[k]);
    return sum;
  }
};

/// Codes of categories, one bit each.
struct CodeSet {
  std::array<std::uint64_t, 4> word{};

  void insert(int code) { word[code >> 6] |= std::uint64_t{1} << (code & 63); }
  bool contains(int code) const { return word[code >> 6] >> (code & 63) & 1; }
};

/// A split with its gain and the sums of what goes left.
template <class Sums>
struct Split {
  double score = 0.0;        // larger is better; 0: there is none
  std::int64_t column = -1;  // -1: a hyperplane, if there is a split at all
  int cut = -1;              // bins up to this one go left
  bool missing_left = false;
  CodeSet codes;  // of a column of categories: these go left
  Hyperplane hyperplane;
  std::int64_t threshold = 0;  // projections below it go left
  Sums left;

  bool is_found() const { return score > 0.0; }

  /// Whether a row of an encoded table goes left.
  template <base::EncodedTable Table>
  bool goes_left(const Table& table, std::int64_t row) const {
    if (!hyperplane.is_empty()) {
      std::int32_t z[most_terms];
      table.gather(row, hyperplane.column.data(), hyperplane.n_terms(), z);
      return hyperplane.project(z) < threshold;
    }
    const int b = table.bin(row, column);
    const base::ColumnInfo& info = table.layout.column[column];
    if (info.is_category) return codes.contains(b);
    return b == info.n_bins ? missing_left : b <= cut;
  }
};

}  // namespace lhtree::split
