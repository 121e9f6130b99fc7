// Projections of many large nodes from one pass over the table.
//
// The rows of a large node come from the memory, which is fastest in the order of the table,
// and several nodes may need the same: those of trees that grow side by side. So large nodes
// wait for each other. Then the table is swept block by block, and what is in a block is projected
// for all of them, and added to their slices, while it is in a cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "guess_kernels.hpp"
#include "projection_kernels.hpp"
#include "slices.hpp"
#include "stop.hpp"
#include "table.hpp"

namespace lhtree {

/// Whether so many rows of a table are worth a sweep: the table is too large for caches, and they
/// are more than a few.
template <class T>
bool is_large(const Table<T>& table, std::int64_t n_rows) {
  constexpr std::int64_t least_table = 1 << 25, least_rows = 1 << 22;  // bytes
  const std::int64_t row_bytes = table.width * static_cast<std::int64_t>(sizeof(T));
  const bool is_measured = !table.lengths.length.empty();  // see recall.hpp
  return is_measured && table.width <= Slices::most_columns &&
         table.n_rows * row_bytes >= least_table && n_rows * row_bytes >= least_rows;
}

template <class T>
class Sweep {
 public:
  /// The targets of a node, or its rest, and what is wanted of them.
  struct Part {
    RowSet rows;  // in the order of the table; others are only slower
    bool is_target;
    const double* weight;  // [width of the table] to be projected on
    double middle_score;   // taken off the projections
    float* known;          // by row of the table: gets the projections
    Slices* slices;        // get the rows; or null
    std::int64_t n_done = 0;
  };

  bool is_empty() const { return part_.empty(); }
  void add(const Part& part) { part_.push_back(part); }

  void run(const Table<T>& table, const StopFlag& stop) {
    constexpr std::int64_t block_bytes = 1 << 18;  // half of a common second-level cache
    const std::int64_t n_bytes = table.width * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t n_rows = std::max<std::int64_t>(1, block_bytes / n_bytes);
    for (std::int64_t begin = 0; begin < table.n_rows; begin += n_rows) {
      check_stop(stop);
      for (Part& part : part_)
        while (const std::int64_t n = count_next(part, begin + n_rows))
          project_next(table, part, n);
    }
  }

 private:
  /// How many of the part's next rows lie before `end`, up to a step.
  static std::int64_t count_next(const Part& part, std::int64_t end) {
    const std::uint32_t* row = part.rows.row + part.n_done;
    const std::int64_t n_most = std::min(Slices::most_rows, part.rows.size - part.n_done);
    std::int64_t n = 0;
    while (n < n_most && row[n] < end) ++n;
    return n;
  }

  static void project_next(const Table<T>& table, Part& part, std::int64_t n) {
    constexpr std::int64_t ahead = 2 * Slices::most_rows;  // rows from asking for one to reading it
    const std::uint32_t* number = part.rows.row + part.n_done;
    const std::int64_t last = part.rows.size - part.n_done - 1;
    const T *row[Slices::most_rows], *later[Slices::most_rows];
    for (std::int64_t i = 0; i < n; ++i) {
      row[i] = table.row(number[i]);
      later[i] = table.row(number[std::min(i + ahead, last)]);
    }
    double score[Slices::most_rows];
    float known[Slices::most_rows];
    project(row, n, {nullptr, part.weight, table.n_columns, true}, Place::cached, score);
    for (std::int64_t i = 0; i < n; ++i) {
      known[i] = remember(score[i] - part.middle_score);
      part.known[number[i]] = known[i];
    }
    if (part.slices)
      part.slices->add(row, later, known, part.is_target, n);
    else
      for (std::int64_t i = 0; i < n; ++i) prefetch(later[i], table.width);
    part.n_done += n;
  }

  std::vector<Part> part_;
};

}  // namespace lhtree
