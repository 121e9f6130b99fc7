// What each column adds to the scores of a row.
//
// On the way of a row down a tree, the expected value changes from node to node. The change at a
// split by a single column is that column's; at a hyperplane it is divided among the terms in
// proportion to |coefficient * (z - fill)|. All parts are integers: the term with the largest part
// takes what rounding leaves over, so that they add up exactly.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/grid.hpp"
#include "base/reals.hpp"
#include "predict/walk.hpp"

namespace lhtree::predict {

/// Divides changes of scores among the columns of splits.
class ChangeDivider {
 public:
  /// `value` has the expected value of each node, for each output.
  ChangeDivider(const PreparedView& view, const std::int64_t* value, std::int64_t n_outputs,
                std::int64_t n_columns)
      : view_(view), value_(value), n_outputs_(n_outputs), n_columns_(n_columns) {}

  /// Add the change from a split to its child to the sums of a row: [n_outputs, n_columns].
  void divide(std::int64_t split, std::int64_t child, const std::int32_t* z,
              std::int64_t* sum) const {
    const Step& step = view_.steps[split];
    if (step.kind() == Step::hyperplane) return divide_hyperplane(split, child, z, sum);
    for (std::int64_t k = 0; k < n_outputs_; ++k)
      sum[k * n_columns_ + step.column()] += change(split, child, k);
  }

 private:
  std::int64_t change(std::int64_t split, std::int64_t child, std::int64_t output) const {
    return value_[child * n_outputs_ + output] - value_[split * n_outputs_ + output];
  }

  /// The parts of a hyperplane's terms; the magnitudes of their coefficients if all are 0.
  std::vector<std::int64_t> measure(std::uint64_t plane, const std::int32_t* z) const {
    const std::int64_t first = view_.trees.term_start[plane],
                       last = view_.trees.term_start[plane + 1];
    std::vector<std::int64_t> part(last - first);
    bool is_somewhere = false;
    for (std::int64_t k = first; k < last; ++k) {
      const std::int32_t value = z[view_.term_position[k]];
      const std::int64_t offset =
          value == base::gap ? 0 : std::int64_t{value} - view_.trees.fill[k];
      part[k - first] = std::abs(offset * view_.trees.coefficient[k]);
      is_somewhere |= part[k - first] != 0;
    }
    if (!is_somewhere)
      for (std::int64_t k = first; k < last; ++k)
        part[k - first] = std::abs(std::int64_t{view_.trees.coefficient[k]});
    return part;
  }

  void divide_hyperplane(std::int64_t split, std::int64_t child, const std::int32_t* z,
                         std::int64_t* sum) const {
    const std::uint64_t plane = view_.steps[split].payload;
    const std::vector<std::int64_t> part = measure(plane, z);
    std::int64_t total = 0;
    std::size_t largest = 0;
    for (std::size_t k = 0; k < part.size(); ++k) {
      total += part[k];
      if (part[k] > part[largest]) largest = k;
    }
    const std::int32_t* column = view_.trees.feature + view_.trees.term_start[plane];
    for (std::int64_t output = 0; output < n_outputs_; ++output) {
      const std::int64_t whole = change(split, child, output);
      std::int64_t* own = sum + output * n_columns_;
      std::int64_t rest = whole;
      for (std::size_t k = 0; k < part.size(); ++k) {
        if (k == largest) continue;
        const double fraction = static_cast<double>(part[k]) / static_cast<double>(total);
        const auto added =
            static_cast<std::int64_t>(base::round_half_up(static_cast<double>(whole) * fraction));
        own[column[k]] += added;
        rest -= added;
      }
      own[column[largest]] += rest;
    }
  }

  PreparedView view_;
  const std::int64_t* value_;
  std::int64_t n_outputs_, n_columns_;
};

}  // namespace lhtree::predict
