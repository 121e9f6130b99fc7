// Monotone and interaction constraints: trends of columns, bounds of nodes, groups of columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/instructions.hpp"
#include "base/table.hpp"
#include "split/split.hpp"

namespace lhtree::split {

/// Between what the outputs of a node lie.
template <class T>
struct Bounds {
  T low, high;

  LHTREE_INLINED T clip(T value) const { return value < low ? low : value > high ? high : value; }

  /// Those of both children of a split whose order is -1, 0 or 1.
  std::pair<Bounds, Bounds> divide(int order, T middle) const {
    const Bounds below{low, middle}, above{middle, high};
    if (order == 0) return {*this, *this};
    return order > 0 ? std::pair{below, above} : std::pair{above, below};
  }
};

/// Of Newton steps.
using StepBounds = Bounds<double>;

/// What constraints leave to a node.
struct Freedom {
  StepBounds bounds{-std::numeric_limits<double>::infinity(),
                    std::numeric_limits<double>::infinity()};
  std::vector<std::int32_t> groups;  // whose columns it may use; empty where there are none
};

/// Constraints of a model.
struct Constraints {
  std::vector<std::int8_t> trend;                // of the score in each column; empty: none has one
  std::vector<std::vector<std::int32_t>> group;  // of columns, ascending; empty: all may interact

  bool is_monotone() const { return !trend.empty(); }
  int trend_of(std::int64_t column) const { return is_monotone() ? trend[column] : 0; }

  /// Projections rise with the gradient, so scores fall.
  int order_of(const Hyperplane& hyperplane) const {
    const auto& columns = hyperplane.column;
    return std::any_of(columns.begin(), columns.end(),
                       [&](std::int32_t j) { return trend_of(j) != 0; })
               ? -1
               : 0;
  }

  /// Whether the outputs of the left side must be at most (1) or at least (-1) those of the right.
  template <class Sums>
  int order_of(const Split<Sums>& split, const base::Layout& layout) const {
    if (!split.hyperplane.is_empty()) return order_of(split.hyperplane);
    const base::ColumnInfo& column = layout.column[split.column];
    const bool is_missing = split.cut == column.n_bins - 1;  // all present values go left
    return column.is_category || is_missing ? 0 : trend_of(split.column);
  }

  /// The groups that have all columns of a split.
  template <class Sums>
  std::vector<std::int32_t> keep_groups(const std::vector<std::int32_t>& groups,
                                        const Split<Sums>& split) const {
    std::vector<std::int32_t> used = split.hyperplane.column;
    if (used.empty()) used.push_back(static_cast<std::int32_t>(split.column));
    std::sort(used.begin(), used.end());
    std::vector<std::int32_t> kept;
    for (const std::int32_t number : groups) {
      const std::vector<std::int32_t>& columns = group[number];
      if (std::includes(columns.begin(), columns.end(), used.begin(), used.end()))
        kept.push_back(number);
    }
    return kept;
  }
};

}  // namespace lhtree::split
