// The rows of a tree, each node's together, all in their old order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/team.hpp"
#include "old/pages.hpp"

namespace lhtree::grow {

/// Divides the rows of nodes. A team shares those of large ones: each thread divides a part into a
/// spare place, from both ends, and all parts then go to where they belong.
class RowPartition {
 public:
  RowPartition(std::int64_t n_rows, base::Team& team) : team_(team) { spare_.resize(n_rows); }

  void start(const PageVector<std::uint32_t>& rows) { row_ = rows; }

  const PageVector<std::uint32_t>& rows() const { return row_; }

  /// Move the rows from `begin` to `end` that go left to the front; returns their number. Row
  /// `row`, the i-th of these, goes left if goes_left(row, i); look_ahead(row) comes before.
  template <class GoesLeft, class LookAhead>
  std::int64_t move_left(std::int64_t begin, std::int64_t end, const GoesLeft& goes_left,
                         const LookAhead& look_ahead) {
    const std::int64_t n = end - begin;
    std::uint32_t* row = row_.data() + begin;
    if (team_.size() > 1 && n >= 2 * least_part) return share(row, n, goes_left, look_ahead);
    std::int64_t n_left = 0, n_right = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t each = row[i];
      if (i + ahead < n) look_ahead(row[i + ahead]);
      const bool is_left = goes_left(each, i);
      row[n_left] = each;
      spare_[n_right] = each;
      n_left += is_left;
      n_right += !is_left;
    }
    std::memcpy(row + n_left, spare_.data(), n_right * sizeof(std::uint32_t));
    return n_left;
  }

 private:
  static constexpr std::int64_t ahead = 16;
  static constexpr std::int64_t least_part = 1 << 10;  // rows

  template <class GoesLeft, class LookAhead>
  std::int64_t share(std::uint32_t* row, std::int64_t n, const GoesLeft& goes_left,
                     const LookAhead& look_ahead) {
    const std::int64_t n_parts = std::min(n / least_part, 4 * team_.size());
    const auto start = [=](std::int64_t part) { return n * part / n_parts; };
    n_left_.resize(n_parts);
    team_.run(n_parts, [&](std::int64_t k) {
      n_left_[k] = divide(row, start(k), start(k + 1), goes_left, look_ahead);
    });
    std::int64_t n_left = 0;
    for (std::int64_t& each : n_left_) n_left += std::exchange(each, n_left);
    team_.run(n_parts, [&](std::int64_t k) {
      const std::int64_t first = n_left_[k], last = k + 1 < n_parts ? n_left_[k + 1] : n_left;
      const std::uint32_t *from = spare_.data() + start(k), *end = spare_.data() + start(k + 1);
      std::copy_n(from, last - first, row + first);
      std::reverse_copy(from + (last - first), end, row + n_left + (start(k) - first));
    });
    return n_left;
  }

  /// Write those that go left to the front of their spare place, in their order, the others to its
  /// end, in the reverse order; returns how many go left.
  template <class GoesLeft, class LookAhead>
  std::int64_t divide(const std::uint32_t* row, std::int64_t begin, std::int64_t end,
                      const GoesLeft& goes_left, const LookAhead& look_ahead) {
    std::int64_t left = begin, right = end - 1;
    std::uint32_t* spare = spare_.data();
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint32_t each = row[i];
      if (i + ahead < end) look_ahead(row[i + ahead]);
      const bool is_left = goes_left(each, i);
      spare[is_left ? left : right] = each;
      left += is_left;
      right -= !is_left;
    }
    return left - begin;
  }

  base::Team& team_;
  PageVector<std::uint32_t> row_, spare_;
  std::vector<std::int64_t> n_left_;  // of parts; then of all before them
};

}  // namespace lhtree::grow
