// The arrays of an ensemble of boosted trees, as the model holds them, and their checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/columns.hpp"
#include "numpy.hpp"
#include "predict/walk.hpp"
#include "split/split.hpp"

namespace lhtree {

/// The arrays of an ensemble, kept alive.
struct EnsembleArrays {
  Longs tree_start, weight, term_start, cut;
  Ints left, column, feature, fill;
  Input<std::int32_t, 2> value;  // of each leaf, for each output
  Input<std::uint8_t, 1> missing_left;
  Doubles threshold;
  Input<std::uint64_t, 2> codes;
  Input<std::int16_t, 1> coefficient;

  explicit EnsembleArrays(nb::handle object)
      : tree_start(get_array<std::int64_t>(object, "tree_start")),
        weight(get_array<std::int64_t>(object, "weight")),
        term_start(get_array<std::int64_t>(object, "term_start")),
        cut(get_array<std::int64_t>(object, "cut")),
        left(get_array<std::int32_t>(object, "left")),
        column(get_array<std::int32_t>(object, "column")),
        feature(get_array<std::int32_t>(object, "feature")),
        fill(get_array<std::int32_t>(object, "fill")),
        value(get_array<std::int32_t, 2>(object, "value")),
        missing_left(get_array<std::uint8_t>(object, "missing_left")),
        threshold(get_array<double>(object, "threshold")),
        codes(get_array<std::uint64_t, 2>(object, "codes")),
        coefficient(get_array<std::int16_t>(object, "coefficient")) {}

  predict::EnsembleView view() const {
    return {static_cast<std::int64_t>(tree_start.size()) - 1,
            tree_start.data(),
            left.data(),
            column.data(),
            missing_left.data(),
            threshold.data(),
            codes.data(),
            term_start.data(),
            feature.data(),
            coefficient.data(),
            fill.data(),
            cut.data()};
  }

  /// Refuse arrays that a walk could leave, or in which it would not end.
  void check(const std::vector<base::Column>& columns) const {
    const auto n_nodes = left.size();
    demand(tree_start.size() > 0 && tree_start(0) == 0, "tree_start must begin with 0");
    check_starts(tree_start, tree_start.size() - 1, n_nodes,
                 "tree_start must end at the last node");
    for (const std::size_t size : {column.size(), weight.size(), missing_left.size()})
      demand(size == n_nodes, "the arrays of nodes must have one entry per node");
    std::size_t n_numbers = 0, n_categories = 0, n_planes = 0;
    for (std::size_t tree = 0; tree + 1 < tree_start.size(); ++tree) {
      const std::int64_t n = tree_start(tree + 1) - tree_start(tree);
      std::int64_t next = 1;  // children come in the order of their parents
      demand(n > 0, "a tree must have a node");
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t node = tree_start(tree) + k, child = left(node), j = column(node);
        demand(missing_left(node) <= 1, "missing_left must be 0 or 1");
        if (child < 0) continue;
        demand(child == next && child + 1 < n && child > k,
               "the nodes of a tree must be numbered breadth-first");
        next += 2;
        demand(j < static_cast<std::int64_t>(columns.size()), "a split has an unknown column");
        if (j < 0)
          ++n_planes;
        else
          columns[j].is_category() ? ++n_categories : ++n_numbers;
      }
      demand(next == n, "every node of a tree must have a parent");
    }
    demand(value.shape(0) == n_nodes - n_numbers - n_categories - n_planes && value.shape(1) > 0,
           "value must have one row per leaf, and an output");
    demand(threshold.size() == n_numbers, "threshold must have one entry per split by numbers");
    demand(codes.shape(0) == n_categories && codes.shape(1) == 4,
           "codes must have four words per split by categories");
    demand(cut.size() == n_planes, "cut must have one entry per hyperplane");
    check_starts(term_start, n_planes, feature.size(), "term_start must rise to the last term");
    demand(coefficient.size() == feature.size() && fill.size() == feature.size(),
           "the arrays of terms must have one entry per term");
    for (std::size_t k = 0; k < feature.size(); ++k)
      demand(0 <= feature(k) && feature(k) < static_cast<std::int32_t>(columns.size()),
             "a hyperplane has an unknown column");
    for (std::size_t k = 0; k < n_planes; ++k)
      demand(term_start(k + 1) - term_start(k) <= split::most_terms,
             "a hyperplane has too many terms");
  }
};

}  // namespace lhtree
