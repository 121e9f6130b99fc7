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
    float* known;          // of each of them: gets the projections
    Slices* slices;        // get the rows; or null
    std::int64_t n_done = 0;
  };

  bool is_empty() const { return part_.empty(); }
  void add(const Part& part) { part_.push_back(part); }

  void run(const Table<T>& table, const StopFlag& stop) {
    constexpr std::int64_t block_bytes = 1 << 18;  // a quarter of a common second-level cache
    const std::int64_t n_bytes = table.width * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t n_rows = std::max<std::int64_t>(1, block_bytes / n_bytes);
    const std::int64_t n_wanted = count_rows();
    const bool is_thin = 4 * n_wanted < table.n_rows;  // most of the table is in no part
    for (std::int64_t begin = 0; begin < table.n_rows; begin += n_rows) {
      check_stop(stop);
      Stream next(table, begin + n_rows, n_rows);
      for (Part& part : part_)
        while (const std::int64_t n = count_next(part, begin + n_rows)) {
          if (is_thin)
            fetch_later(table, part, n);
          else
            next.fetch(1 + n * next.n_lines(table.n_rows) / n_wanted);
          project_next(table, part, n);
        }
    }
  }

 private:
  /// A block of the table that is asked for line by line while another one is at work. In its
  /// order and at that pace the memory is hardly waited for.
  class Stream {
   public:
    Stream(const Table<T>& table, std::int64_t begin, std::int64_t n_rows)
        : table_(reinterpret_cast<const char*>(table.values)),
          row_bytes_(table.stride * static_cast<std::int64_t>(sizeof(T))),
          next_(std::min(begin, table.n_direct) * row_bytes_),
          end_(std::min(begin + n_rows, table.n_direct) * row_bytes_) {}

    /// Lines of so many rows.
    std::int64_t n_lines(std::int64_t n_rows) const { return n_rows * row_bytes_ / line_bytes; }

    void fetch(std::int64_t n) {
      for (; n > 0 && next_ < end_; --n, next_ += line_bytes) prefetch_line(table_ + next_);
    }

   private:
    const char* table_;
    std::int64_t row_bytes_;
    std::int64_t next_, end_;  // bytes of the table
  };

  std::int64_t count_rows() const {
    std::int64_t n = 0;
    for (const Part& part : part_) n += part.rows.size;
    return n;
  }

  /// How many of the part's next rows lie before `end`, up to a step.
  static std::int64_t count_next(const Part& part, std::int64_t end) {
    const std::uint32_t* row = part.rows.row + part.n_done;
    const std::int64_t n_most = std::min(Slices::most_rows, part.rows.size - part.n_done);
    std::int64_t n = 0;
    while (n < n_most && row[n] < end) ++n;
    return n;
  }

  /// Ask for `n` rows of the part that are read after the next ones.
  static void fetch_later(const Table<T>& table, const Part& part, std::int64_t n) {
    const std::int64_t first = part.n_done + Slices::most_rows;
    const std::int64_t end = std::min(first + n, part.rows.size);
    for (std::int64_t i = first; i < end; ++i) prefetch(table.row(part.rows.row[i]), table.width);
  }

  static void project_next(const Table<T>& table, Part& part, std::int64_t n) {
    const std::uint32_t* number = part.rows.row + part.n_done;
    const T* row[Slices::most_rows];
    for (std::int64_t i = 0; i < n; ++i) row[i] = table.row(number[i]);
    double score[Slices::most_rows];
    float* known = part.known + part.n_done;
    project(row, n, {nullptr, part.weight, table.n_columns, true}, Place::cached, score);
    for (std::int64_t i = 0; i < n; ++i) known[i] = remember(score[i] - part.middle_score);
    if (part.slices) part.slices->add(row, known, part.is_target, n);
    part.n_done += n;
  }

  std::vector<Part> part_;
};

}  // namespace lhtree
