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

/// What a row does on a chain. Splits are numbered along the chain.
struct Passage {
  float exit;     // the split where the row leaves, `most` if it stays; -1: a side is not sure
  float nearest;  // the split that it came nearest to
  float first;    // its distance from that one
  float second;   // its distance from the second nearest
};

/// The passages of several rows, one array for each part: room for whole tiles.
struct Passages {
  static constexpr std::int64_t tile = Floats::count;  // rows that are worked on side by side

  float* exit;
  float* nearest;
  float* first;
  float* second;
};

/// Guess the passages of the rows row[0], row[1], ... of a table that has the columns of the
/// chain; `error` is by rows of the table.
void guess_passages(const Chain& chain, const float* values, const float* error,
                    const std::int32_t* row, std::int64_t n_rows, Passages passages);

/// gap[v] = distance of a row from the hyperplane of split v, less than 0 below its threshold.
void guess_gaps(const Chain& chain, const float* row, float* gap);

/// The passage of a row whose gaps have the right signs.
Passage find_passage(const Chain& chain, const float* gap);

}  // namespace lhtree
