// What leaves add, in the order that monotone constraints demand, whatever the loss.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "grow/losses.hpp"
#include "grow/tree.hpp"
#include "split/constraints.hpp"

namespace lhtree::grow {

/// Clip values to the bounds of their nodes. `value` has what each node would add as a leaf; the
/// children of an ordered split share the middle of theirs as a bound.
template <class Sums>
void clip_values(const std::vector<Node<Sums>>& nodes, const split::Constraints& constraints,
                 const base::Layout& layout, std::vector<std::int32_t>& value) {
  using ValueBounds = split::Bounds<std::int64_t>;
  constexpr auto most = static_cast<std::int64_t>(most_value);
  std::vector<ValueBounds> bounds(nodes.size(), ValueBounds{-most, most});
  for (std::size_t k = 0; k < nodes.size(); ++k) {  // parents come before their children
    const ValueBounds& own = bounds[k];
    value[k] = static_cast<std::int32_t>(own.clip(value[k]));
    const std::int64_t left = nodes[k].left;
    if (left < 0) continue;
    const int order = constraints.order_of(nodes[k].split, layout);
    const std::int64_t middle = (own.clip(value[left]) + own.clip(value[left + 1])) >> 1;
    std::tie(bounds[left], bounds[left + 1]) = own.divide(order, middle);
  }
}

}  // namespace lhtree::grow
