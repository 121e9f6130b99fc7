// A node on its way through the grower.
#pragma once

#include <cstdint>
#include <vector>

#include "pages.hpp"
#include "table.hpp"

namespace lhtree {

/// The rows of a node: targets first, then the rest, which follows them in one array.
struct NodeRows {
  RowSet target;
  RowSet rest;
  float* known = nullptr;  // of each of them, its projection that was kept last; see recall.hpp
  std::int64_t size() const { return target.size + rest.size; }
  bool is_mixed() const { return target.size > 0 && rest.size > 0; }
};

/// The rows of a tree, targets first, and what is known of each, if it is kept; nodes have parts.
struct TreeRows {
  PageVector<std::uint32_t> row;
  PageVector<float> known;
  std::int64_t n_targets = 0;
};

/// A node that waits to be looked at. What its splitter knows of it is in `state`.
template <class State>
struct Pending {
  std::int32_t id;
  std::int64_t depth;
  std::uint64_t key;                // of its random draws
  std::int64_t begin, middle, end;  // its part of the row array: targets, then the rest
  State state;                      // empty if the node is pure
};

inline double sum_weight(RowSet rows) {
  if (!rows.weight) return static_cast<double>(rows.size);
  double sum = 0.0;
  for (std::int64_t i = 0; i < rows.size; ++i) sum += rows.weight[rows.row[i]];
  return sum;
}

/// The weights of a node's rows side by side; empty if every row counts once.
inline void gather_weight(const NodeRows& rows, PageVector<double>& weight) {
  weight.clear();
  if (!rows.target.weight) return;
  weight.reserve(rows.size());
  for (const RowSet& part : {rows.target, rows.rest})
    for (std::int64_t i = 0; i < part.size; ++i) weight.push_back(part.weight[part.row[i]]);
}

}  // namespace lhtree
