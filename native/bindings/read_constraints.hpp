// Monotone and interaction constraints of a Python `BoostingPlan`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/table.hpp"
#include "numpy.hpp"
#include "split/constraints.hpp"

namespace lhtree {

/// The trend of each column; none if all are 0.
inline std::vector<std::int8_t> read_trends(nb::handle plan, const base::Layout& layout,
                                            std::int64_t n_outputs) {
  std::vector<std::int8_t> result;
  for (const nb::handle each : plan.attr("monotonic_cst")) {
    const int trend = nb::cast<int>(each);
    demand(-1 <= trend && trend <= 1, "monotonic_cst must have -1, 0 or 1 only");
    result.push_back(static_cast<std::int8_t>(trend));
  }
  if (std::all_of(result.begin(), result.end(), [](auto each) { return each == 0; })) return {};
  demand(n_outputs == 1, "monotonic_cst needs a loss with one output");
  demand(static_cast<std::int64_t>(result.size()) == layout.n_columns(),
         "monotonic_cst must have one entry per column");
  for (std::size_t j = 0; j < result.size(); ++j)
    demand(!layout.column[j].is_category || result[j] == 0, "a column of categories has no trend");
  return result;
}

/// Groups of columns, ascending.
inline std::vector<std::vector<std::int32_t>> read_groups(nb::handle plan,
                                                          const base::Layout& layout) {
  std::vector<std::vector<std::int32_t>> result;
  for (const nb::handle group : plan.attr("interaction_cst")) {
    std::vector<std::int32_t>& columns = result.emplace_back();
    for (const nb::handle each : group) columns.push_back(nb::cast<std::int32_t>(each));
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    demand(!columns.empty() && 0 <= columns.front() && columns.back() < layout.n_columns(),
           "a group of interaction_cst must have columns of the table");
  }
  return result;
}

inline split::Constraints read_constraints(nb::handle plan, const base::Layout& layout,
                                           std::int64_t n_outputs) {
  return {read_trends(plan, layout, n_outputs), read_groups(plan, layout)};
}

}  // namespace lhtree
