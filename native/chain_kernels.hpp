// Loops that take the time: rows that pass several splits of a tree one after the other.
//
// They guess in single precision; an error bounds by how much the guesses about a row may be
// off. Numbers of splits are floats, too: what has one type is worked on side by side. The loops
// are compiled once per instruction set and picked at load time.
#pragma once

#include <cstdint>

#include "floats.hpp"

namespace lhtree {

/// Up to eight splits over all columns, each in the child of the one before that most rows
/// go to. Behind the last one, weights are anything and thresholds minus infinity.
struct Chain {
  static constexpr int most = Floats::count;
  static constexpr std::int64_t columns_per_sum = 128;  // more would make errors grow

  std::int64_t n_columns;
  const float* weight;  // [n_columns, most] scaled to length one
  std::int32_t node[most];
  float threshold[most];  // scaled like the weights
  // The number of the split where a row leaves the chain: if it lies below the threshold, or
  // if not; `most` where it stays.
  float if_below[most];
  float if_not[most];
};

/// gap[i, v] = distance of row[i] from the hyperplane of split v, less than 0 below its
/// threshold. `values` has the columns of the chain.
void guess_gaps(const Chain& chain, const float* values, const std::int32_t* row,
                std::int64_t n_rows, float* gap);

/// What the gaps of a row say. Splits are numbered along the chain.
struct Passage {
  float exit;     // the split where the row leaves, `most` if it stays; -1: a side is not sure
  float nearest;  // the split that it came nearest to
  float first;    // its distance from that one
  float second;   // its distance from the second nearest
};

/// Find the passage of each row, whose gaps may be off by `error`.
void find_passages(const Chain& chain, const float* __restrict gap, const float* __restrict error,
                   std::int64_t n_rows, Passage* __restrict passage);

}  // namespace lhtree
