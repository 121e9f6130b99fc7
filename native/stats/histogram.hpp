// Sums of gradients and hessians by bin: exact integers, in any order of rows.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/binned_table.hpp"

namespace lhtree::stats {

constexpr int gradient_bits = 22;  // |g| < 2**22
constexpr int hessian_bits = 15;   // 0 < h < 2**15

/// The gradient and the hessian of a row in one word, so that one addition adds both.
///
/// The low 28 bits hold the hessians of at most 2**13 rows, the high 36 bits their gradients.
using Packed = std::int64_t;
constexpr int low_bits = 28;
constexpr std::int64_t rows_per_word = 1 << 13;
static_assert(hessian_bits + 13 <= low_bits, "hessians of 2**13 rows fit the low bits");
static_assert(gradient_bits + 13 <= 64 - low_bits - 1, "and their gradients the high ones");

inline Packed pack(std::int64_t g, std::int64_t h) { return g * (Packed{1} << low_bits) + h; }

/// A sum over rows.
struct Sums {
  std::int64_t g = 0;
  std::int64_t h = 0;

  void add(Packed sum) {
    const std::int64_t low = sum & ((Packed{1} << low_bits) - 1);
    h += low;
    g += (sum - low) >> low_bits;
  }
  Sums operator-(const Sums& other) const { return {g - other.g, h - other.h}; }
};

inline Sums unpack(Packed word) {
  Sums sums;
  sums.add(word);
  return sums;
}

/// One Sums for each bin of each column, column after column; see BinnedTable::start.
using Histogram = std::vector<Sums>;

/// Adds rows of a node to histograms.
class HistogramBuilder {
 public:
  explicit HistogramBuilder(const base::BinnedTable& table)
      : table_(table), words_(columns_at_once * stride) {}

  /// Sum the rows listed, whose packed gradients are `packed[row]`, in their order.
  void build(const std::uint32_t* row, std::int64_t n, const Packed* packed, Histogram& result) {
    result.assign(table_.n_places(), {});
    for (std::int64_t first = 0; first < table_.n_columns; first += columns_at_once) {
      const std::int64_t last = std::min(table_.n_columns, first + columns_at_once);
      for (std::int64_t begin = 0; begin < n; begin += rows_per_word) {
        add_rows(row + begin, std::min(rows_per_word, n - begin), packed, first, last);
        for (std::int64_t j = first; j < last; ++j) empty_words(first, j, result);
      }
    }
  }

 private:
  static constexpr std::int64_t columns_at_once = 64;  // 132 kB of words stay in a fast cache
  // One line of the cache more than a column has: else the same bins of all columns, such as
  // that of a frequent zero, would compete for the same place in it.
  static constexpr std::int64_t stride = base::most_codes + 8;

  /// Add the words of a column to its sums.
  void empty_words(std::int64_t first, std::int64_t column, Histogram& result) {
    Packed* word = words_.data() + (column - first) * stride;
    Sums* sums = result.data() + table_.start[column];
    const std::int64_t n = table_.start[column + 1] - table_.start[column];
    for (std::int64_t k = 0; k < n; ++k) {
      sums[k].add(word[k]);
      word[k] = 0;
    }
  }

  void add_rows(const std::uint32_t* row, std::int64_t n, const Packed* packed, std::int64_t first,
                std::int64_t last) {
    constexpr std::int64_t ahead = 16;
    constexpr std::int64_t size = stride;
    const std::int64_t n_columns = last - first;
    for (std::int64_t i = 0; i < n; ++i) {
#if defined(__GNUC__)
      if (i + ahead < n) __builtin_prefetch(table_.row(row[i + ahead]) + first);
#endif
      const Packed p = packed[row[i]];
      const std::uint8_t* bin = table_.row(row[i]) + first;
      Packed* word = words_.data();
      std::int64_t j = 0;
      for (; j + 4 <= n_columns; j += 4, word += 4 * size) {
        word[bin[j]] += p;
        word[size + bin[j + 1]] += p;
        word[2 * size + bin[j + 2]] += p;
        word[3 * size + bin[j + 3]] += p;
      }
      for (; j < n_columns; ++j, word += size) word[bin[j]] += p;
    }
  }

  const base::BinnedTable& table_;
  std::vector<Packed> words_;
};

/// The histogram of a sibling: that of the parent less that of the other child.
inline void subtract(Histogram& whole, const Histogram& part) {
  assert(whole.size() == part.size());
  for (std::size_t k = 0; k < whole.size(); ++k) whole[k] = whole[k] - part[k];
}

}  // namespace lhtree::stats
