// The training or prediction rows as the kernels see them.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

#include "lanes.hpp"
#include "pages.hpp"

namespace lhtree {

/// The length of a row in two bytes: the upper half of a float, rounded up. Every row has one, and
/// bounds that follow from it are too wide by a hundredth at most.
class ShortLength {
 public:
  ShortLength() = default;
  explicit constexpr ShortLength(float length) {
    const auto bits = std::bit_cast<std::uint32_t>(length);
    const bool is_rounded = length == length && bits % half != 0;  // not a number stays so
    upper_ = static_cast<std::uint16_t>(bits / half + is_rounded);
  }
  constexpr operator float() const { return std::bit_cast<float>(upper_ * half); }

 private:
  static constexpr std::uint32_t half = 1 << 16;
  std::uint16_t upper_;
};
static_assert(ShortLength(1.0f) == 1.0f && ShortLength(1.001f) > 1.001f);

/// How far the rows of a table lie from its middle; see recall.hpp.
struct RowLengths {
  std::vector<double> middle;  // [width of the table]
  double middle_length = 0.0;
  PageVector<ShortLength> length;  // [n_rows], rounded up; empty: not measured
  float longest = 0.0f;
};

/// A row-major matrix whose rows may be read in whole lanes.
///
/// Kernels load eight columns at a time. The last load of a row runs into the
/// next row, where a zero weight cancels what it finds (values are finite: zero times
/// infinity would not vanish; kernels for missing values fill them first); only the
/// last rows have no such neighbour, so they are kept in a padded copy.
template <class T>
struct Table {
  const T* values;
  std::int64_t n_rows;
  std::int64_t n_columns;
  std::int64_t width;     // n_columns rounded up to whole lanes
  std::int64_t stride;    // from one row of `values` to the next
  std::int64_t n_direct;  // rows that are read in `values`; the others are in `tail`
  bool has_missing;       // whether a value may be NaN
  std::vector<T> tail;
  RowLengths lengths;

  Table(const T* values, std::int64_t n_rows, std::int64_t n_columns, bool has_missing)
      : values(values),
        n_rows(n_rows),
        n_columns(n_columns),
        width(padded(n_columns)),
        stride(n_columns),
        has_missing(has_missing) {
    const std::int64_t n_tail = std::min(n_rows, (width + n_columns - 1) / n_columns);
    n_direct = n_rows - n_tail;
    tail.assign(static_cast<std::size_t>(n_tail * width), T{0});
    for (std::int64_t i = 0; i < n_tail; ++i)
      std::copy_n(values + (n_direct + i) * n_columns, n_columns, tail.data() + i * width);
  }

  /// A table of no rows yet, see make_room.
  Table(std::int64_t n_columns, bool has_missing)
      : values(nullptr),
        n_rows(0),
        n_columns(n_columns),
        width(padded(n_columns)),
        stride(width),
        n_direct(0),
        has_missing(has_missing) {}

  /// First column of a row; `width` columns may be read.
  const T* row(std::int64_t i) const {
    return i < n_direct ? values + i * stride : tail.data() + (i - n_direct) * width;
  }

  /// Have room for `n` padded rows, to be filled by `assign`: what was there is lost.
  void make_room(std::int64_t n) {
    assert(n_direct == 0);
    if (n <= n_rows) return;
    std::vector<T>().swap(tail);  // before more is taken
    tail.resize(static_cast<std::size_t>(n * width));
    n_rows = n;
  }

  /// Copy a row of another table.
  void assign(std::int64_t i, const T* row) { std::copy_n(row, width, tail.data() + i * width); }
};

/// Rows of a table, by index, with an optional weight per table row.
struct RowSet {
  const std::uint32_t* row;
  std::int64_t size;
  const double* weight;  // [n_rows of the table] or null: every row counts once
};

}  // namespace lhtree
