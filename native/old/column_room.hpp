// Room for the columns that a node draws.
//
// A small node holds all of them side by side. A larger one holds some and reads the others
// again for each use, in parts that stay in a cache. The room serves one tree after the other:
// large arrays that come and go cost much time. What is not written takes no memory.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "lanes.hpp"
#include "pages.hpp"

namespace lhtree {

class ColumnRoom {
 public:
  /// Sums over rows are taken in blocks of so many, and parts are whole blocks: no bit of a sum
  /// depends on what a node holds.
  static constexpr std::int64_t block_rows = 256;

  /// Have room for the nodes of a tree that draw `n_drawn` > 0 of `n_columns` columns, and have
  /// `n_root` rows at most. Columns that cannot be read in parts must all find room.
  void resize(std::int64_t n_root, std::int64_t n_columns, std::int64_t n_drawn, bool reads_parts) {
    constexpr std::int64_t few_rows = 512, many_rows = 4096;  // columns are read as streams
    constexpr std::int64_t part_of_room = 8;                  // that parts may take
    static_assert(few_rows % block_rows == 0 && many_rows % block_rows == 0);
    const std::int64_t root_line = padded(n_root), n_all = (1 + n_drawn) * root_line;
    // The projections and all columns of a small node, or two of the root and parts of the others.
    const std::int64_t n_wanted = std::max((1 + n_drawn) * padded(std::min(n_root, small_node)),
                                           3 * root_line + n_drawn * many_rows);
    const std::int64_t n_meant =
        std::min(n_wanted, std::max(small_room, n_root * n_columns / table_part));
    const std::int64_t n_part = std::clamp(n_meant / (part_of_room * n_drawn), few_rows, many_rows);
    n_drawn_ = n_drawn;
    part_rows_ = n_part - n_part % block_rows;
    // Either all columns of every node find room, or its projections and parts of all columns.
    n_values_ = std::min(n_all, std::max(n_meant, root_line + n_drawn * part_rows_));
    if (!reads_parts) n_values_ = n_all;
    remake(room_, static_cast<std::size_t>(n_values_));
  }

  /// Begin with a node of `n_rows`: what is there is lost.
  void start(std::int64_t n_rows) {
    line_ = padded(n_rows);
    n_held_ = n_values_ / line_ - 1;
    if (n_held_ < n_drawn_) n_held_ = (n_values_ - n_drawn_ * part_rows_) / line_ - 1;
    assert(n_held_ >= 0);
  }

  /// Projections of the node's rows, or a column that is not held.
  double* score() { return room_.data(); }

  /// Whether the drawn column number `k` is held, and where.
  bool holds(std::size_t k) const { return static_cast<std::int64_t>(k) < n_held_; }
  double* column(std::size_t k) { return score() + static_cast<std::int64_t>(k + 1) * line_; }

  /// Room for `part_rows` values of a drawn column, if the node does not hold all of them.
  double* part(std::size_t k) {
    return score() + n_values_ - (n_drawn_ - static_cast<std::int64_t>(k)) * part_rows_;
  }
  std::int64_t part_rows() const { return part_rows_; }

 private:
  static constexpr std::int64_t small_node = 1 << 13;  // rows
  static constexpr std::int64_t small_room = 1 << 15;  // values, whatever the table has
  static constexpr std::int64_t table_part = 12;       // the room of others is so much smaller

  PageVector<double> room_;
  std::int64_t n_values_ = 0;  // of the room
  std::int64_t n_drawn_ = 0;   // columns that a node draws
  std::int64_t part_rows_ = 0;
  std::int64_t line_ = 0;    // values from one column that is held to the next
  std::int64_t n_held_ = 0;  // columns for which there is room
};

}  // namespace lhtree
