// Rows as the caller has them, of which values on the grid are made where they are needed: a
// large table then takes no memory but for its bins.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/columns.hpp"
#include "base/instructions.hpp"
#include "base/values.hpp"

namespace lhtree::base {

/// Places numbers on a grid, in loops that compilers vectorise; the same as Placer.
struct LanePlacer {
  double first, second, origin, low, high;

  LHTREE_INLINED std::int32_t place(double x) const {
    const bool is_present = x == x;
    const double z = round_half_up((is_present ? x : 0.0) * first * second) - origin;
    const double clipped = z < low ? low : z > high ? high : z;
    return is_present ? static_cast<std::int32_t>(clipped) : gap;
  }
};

inline LanePlacer make_lane_placer(const Grid& grid) {
  return {std::ldexp(1.0, grid.power / 2), std::ldexp(1.0, grid.power - grid.power / 2),
          grid.origin, static_cast<double>(grid.low), static_cast<double>(grid.high)};
}

/// The values on the grid of a table of doubles or of floats, by rows or by columns. Where all rows
/// of each bin of a column have the same value, they are looked up by their bins, which are near.
class RawRows {
 public:
  /// `bins` has those of all rows.
  RawRows(const Values<double>& values, const std::vector<Column>& columns,
          const std::uint8_t* bins)
      : doubles_(values), bins_(bins) {
    make_placers(columns);
    learn_lookups(values);
  }
  RawRows(const Values<float>& values, const std::vector<Column>& columns, const std::uint8_t* bins)
      : floats_(values), bins_(bins) {
    make_placers(columns);
    learn_lookups(values);
  }

  /// The values of some columns in a row.
  void gather(std::int64_t row, const std::int32_t* column, std::int64_t n,
              std::int32_t* result) const {
    const std::uint8_t* bin = bins_ + row * n_columns();
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int32_t j = column[k];
      if (!lookup_[j].empty()) {
        result[k] = lookup_[j][bin[j]];
        continue;
      }
      const double x = floats_.first ? static_cast<double>(floats_(row, j)) : doubles_(row, j);
      result[k] = placer_[j].place(x);
    }
  }

  /// The values of p columns in n rows, column after column, each from `stride` times its number.
  void gather_columns(const std::uint32_t* row, std::int64_t n, const std::int32_t* column,
                      std::int64_t p, std::int32_t* result, std::int64_t stride) const {
    // Neighbours of one kind at a time.
    for (std::int64_t first = 0, last = 0; first < p; first = last) {
      const bool is_looked_up = !lookup_[column[first]].empty();
      while (last < p && !lookup_[column[last]].empty() == is_looked_up) ++last;
      std::int32_t* to = result + first * stride;
      if (is_looked_up)
        look_up_columns(row, n, column + first, last - first, to, stride);
      else
        floats_.first ? gather_columns(floats_, row, n, column + first, last - first, to, stride)
                      : gather_columns(doubles_, row, n, column + first, last - first, to, stride);
    }
  }

 private:
  static constexpr std::int64_t block = 32, most_columns = 128;

  std::int64_t n_columns() const { return static_cast<std::int64_t>(placer_.size()); }

  /// Note the value of each bin, unless two rows of it differ.
  template <class T>
  void learn_lookups(const Values<T>& values) {
    constexpr std::int64_t few = 256;  // rows that stay in a fast cache
    const std::int64_t d = n_columns();
    std::vector<std::int64_t> left(d);  // columns without two values in a bin so far
    std::iota(left.begin(), left.end(), 0);
    for (std::int64_t begin = 0; begin < values.n_rows; begin += few)
      std::erase_if(left, [&](std::int64_t j) {
        const std::int64_t end = std::min(values.n_rows, begin + few);
        const bool is_same = note_values(values, j, begin, end);
        if (!is_same) lookup_[j] = {};
        return !is_same;
      });
  }

  template <class T>
  bool note_values(const Values<T>& values, std::int64_t j, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int32_t z = placer_[j].place(static_cast<double>(values(i, j)));
      std::int32_t& known = lookup_[j][bins_[i * n_columns() + j]];
      if (known == unknown) known = z;
      if (known != z) return false;
    }
    return true;
  }

  void look_up_columns(const std::uint32_t* row, std::int64_t n, const std::int32_t* column,
                       std::int64_t p, std::int32_t* result, std::int64_t stride) const {
    constexpr std::int64_t ahead = 16;
    const std::int64_t d = n_columns();
    for (std::int64_t begin = 0; begin < n; begin += block) {
      const std::int64_t m = std::min(block, n - begin);
      for (std::int64_t i = 0; i < m; ++i)
        if (begin + i + ahead < n)
          for (std::int64_t j = 0; j < std::min(d, 32 * line); j += line)
            prefetch(bins_ + row[begin + i + ahead] * d + j);
      for (std::int64_t k = 0; k < p; ++k) {
        const std::int32_t* z = lookup_[column[k]].data();
        const std::uint8_t* bin = bins_ + column[k];
        for (std::int64_t i = 0; i < m; ++i)
          result[k * stride + begin + i] = z[bin[row[begin + i] * d]];
      }
    }
  }

  void make_placers(const std::vector<Column>& columns) {
    for (const Column& each : columns) {
      placer_.push_back(make_lane_placer(each.grid));
      lookup_.emplace_back(each.n_bins() + 1, unknown);
    }
  }

  template <class T>
  void gather_columns(const Values<T>& values, const std::uint32_t* row, std::int64_t n,
                      const std::int32_t* column, std::int64_t p, std::int32_t* result,
                      std::int64_t stride) const {
    double x[most_columns * block] = {};
    for (std::int64_t begin = 0; begin < n; begin += block) {
      const std::int64_t m = std::min(block, n - begin);
      values.is_by_columns() ? read_columns(values, row + begin, m, column, p, x)
                             : read_rows(values, row + begin, m, n - begin, column, p, x);
      place(x, m, column, p, result + begin, stride);
    }
  }

  template <class T>
  static void read_rows(const Values<T>& values, const std::uint32_t* row, std::int64_t m,
                        std::int64_t n_left, const std::int32_t* column, std::int64_t p,
                        double* x) {
    constexpr std::int64_t ahead = 16, line = 64 / sizeof(T),
                           most = 32 * line;  // values of a line of the cache
    const std::int64_t n_ahead = std::min(values.n_columns, most);
    std::int64_t start[block];
    for (std::int64_t i = 0; i < m; ++i) {
      if (i + ahead < n_left)
        for (std::int64_t j = 0; j < n_ahead; j += line) prefetch(&values(row[i + ahead], j));
      start[i] = row[i] * values.row_stride;
    }
    for (std::int64_t k = 0; k < p; ++k) {
      const T* from = &values(0, column[k]);
      for (std::int64_t i = 0; i < m; ++i) x[k * block + i] = static_cast<double>(from[start[i]]);
    }
  }

  template <class T>
  static void read_columns(const Values<T>& values, const std::uint32_t* row, std::int64_t m,
                           const std::int32_t* column, std::int64_t p, double* x) {
    for (std::int64_t k = 0; k < p; ++k) {
      const T* from = &values(0, column[k]);
      for (std::int64_t i = 0; i < m; ++i) x[k * block + i] = static_cast<double>(from[row[i]]);
    }
  }

  void place(const double* x, std::int64_t m, const std::int32_t* column, std::int64_t p,
             std::int32_t* result, std::int64_t stride) const {
    const LanePlacer* placer = placer_.data();
    run_wide([=]() LHTREE_FLAT {
      for (std::int64_t k = 0; k < p; ++k) {
        const LanePlacer own = placer[column[k]];
        std::int32_t z[block];  // all of a block, so that the length is known
        for (std::int64_t i = 0; i < block; ++i) z[i] = own.place(x[k * block + i]);
        for (std::int64_t i = 0; i < m; ++i) result[k * stride + i] = z[i];
      }
    });
  }

  Values<double> doubles_;
  Values<float> floats_;
  static constexpr std::int64_t line = 64;  // bytes of a line of the cache
  static constexpr std::int32_t unknown = std::numeric_limits<std::int32_t>::max();

  std::vector<LanePlacer> placer_;
  const std::uint8_t* bins_;
  std::vector<std::vector<std::int32_t>> lookup_;  // of each bin; empty if it has two values
};

}  // namespace lhtree::base
