// Which rows of a partition are in which node, from Python.
#pragma once

#include <cstdint>

#include "numpy.hpp"
#include "old/part.hpp"

namespace lhtree {

/// Node after node, positive rows first; kept alive and checked.
struct StateHandle {
  RowNumbers row;
  OptionalWeight weight;
  Longs start, middle;

  StateHandle(nb::handle state, std::size_t n_rows)
      : row(get_array<std::uint32_t>(state, "row")),
        start(get_array<std::int64_t>(state, "start")),
        middle(get_array<std::int64_t>(state, "middle")) {
    if (!state.attr("weight").is_none()) weight = get_array<double>(state, "weight");
    const char* what = "the rows of the nodes do not fit together";
    check_starts(start, middle.size(), row.size(), what);
    demand(!weight || weight->size() == row.size(), what);
    for (std::size_t k = 0; k < middle.size(); ++k)
      demand(start(k) <= middle(k) && middle(k) <= start(k + 1), what);
    for (std::size_t i = 0; i < row.size(); ++i) demand(row(i) < n_rows, what);
  }

  std::size_t n_nodes() const { return middle.size(); }
  PartNodes view() const {
    return {row.data(), weight_of(weight), start.data(), middle.data(),
            static_cast<std::int64_t>(n_nodes())};
  }
};

}  // namespace lhtree
