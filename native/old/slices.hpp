// Sums of children whose rows need not be read.
//
// While the rows of a large node are projected they are at hand, so they are added up
// there and then: in slices of the node across its direction. Later splits, of the node or
// of what purity cuts leave of it, are nearly parallel to that, so most slices end up whole
// on one side. The sums of a side are those of its slices; only rows that are on the other
// side of the edge than their slice are read.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <vector>

#include "node.hpp"
#include "pages.hpp"
#include "statistics.hpp"
#include "stop.hpp"
#include "sum_kernels.hpp"
#include "table.hpp"

namespace lhtree {

class Slices {
 public:
  // The sums of all slices stay in a fast cache.
  static constexpr std::int64_t most_columns = 128;

  /// Lay slices over projections like those of the sample. `origin` is what sums are about.
  Slices(const std::vector<float>& sample, const std::vector<double>& origin)
      : origin_(origin.begin(), origin.end()), sums_(4 * n_slices * origin.size(), 0.0) {
    constexpr float reach = 2.5f;  // deviations; the outer slices take what is beyond
    const auto n = static_cast<float>(sample.size());
    float mean = 0.0f, variance = 0.0f;
    for (const float value : sample) mean += value / n;
    for (const float value : sample) variance += (value - mean) * (value - mean) / n;
    low_ = mean - reach * std::sqrt(variance);
    per_unit_ = static_cast<float>(n_slices) / (2.0f * reach * std::sqrt(variance));
    last_ = static_cast<float>(n_slices - 1);
  }

  /// Add `n` rows that have these projections.
  template <class T>
  void add(const T* const* row, const float* known, bool is_target, std::int64_t n) {
    std::uint32_t group[most_rows];
    for (std::int64_t i = 0; i < n; ++i) group[i] = find_group(known[i], is_target);
    const T* const* none = nullptr;  // nothing to ask for
    add_grouped(row, none, group, n, width(), origin_.data(), false, sums_.data());
  }
  static constexpr std::int64_t most_rows = 16;  // so few stay in the fastest cache

  /// Take rows out.
  template <class T>
  void remove(const Table<T>& table, const NodeRows& rows, const StopFlag& stop) {
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      if (i % 4096 == 0) check_stop(stop);
      const T* row = table.row(rows.target.row[i]);  // the rest follows the targets
      const std::uint32_t group = find_group(rows.known[i], i < rows.target.size);
      add_grouped(&row, nullptr, &group, 1, width(), origin_.data(), true, sums_.data());
    }
  }

  /// Fill the sums of the node whose rows are in the slices.
  void sum_all(const NodeRows& rows, Moments& moments) const {
    collect(0, n_slices, moments);
    finish_sums(rows, moments);
  }

  /// Fill the sums of two children, whose rows are in the slices. Returns false, and does
  /// nothing, if too many rows are on the other side than their slice.
  template <class T>
  bool divide(const Table<T>& table, const NodeRows& small, const NodeRows& large, Moments& smaller,
              Moments& larger, const StopFlag& stop) const {
    constexpr std::int64_t least_gain = 4;  // rows that are not read for each that is
    const Edge edge = find_edge(small, large);
    if (edge.n_misfits * least_gain > small.size()) return false;
    collect(edge.small_is_low ? 0 : edge.slice, edge.small_is_low ? edge.slice : n_slices, smaller);
    collect(edge.small_is_low ? edge.slice : 0, edge.small_is_low ? n_slices : edge.slice, larger);
    const auto is_in_small = [&](std::int64_t slice) {
      return (slice < edge.slice) == edge.small_is_low;
    };
    const auto is_in_large = [&](std::int64_t slice) { return !is_in_small(slice); };
    move_sums(sum_misfits(table, small, edge.n_misfits, is_in_large, stop), larger, smaller);
    move_sums(sum_misfits(table, large, edge.n_misfits, is_in_small, stop), smaller, larger);
    finish_sums(small, smaller);
    finish_sums(large, larger);
    return true;
  }

 private:
  static constexpr std::int64_t n_slices = 16;

  /// Between the slices before `slice` and those from it on.
  struct Edge {
    std::int64_t slice;
    bool small_is_low;       // whether the smaller child has the slices before
    std::int64_t n_misfits;  // rows that are on the other side
  };

  std::int64_t width() const { return static_cast<std::int64_t>(origin_.size()); }

  std::int32_t find(float known) const {
    // What is not a number belongs to the first one.
    const float place = std::max(0.0f, (known - low_) * per_unit_);
    return static_cast<std::int32_t>(std::min(place, last_));
  }

  std::uint32_t find_group(float known, bool is_target) const {
    return static_cast<std::uint32_t>(2 * find(known) + is_target);
  }

  /// Sum up the slices from number `begin` to `end`.
  void collect(std::int64_t begin, std::int64_t end, Moments& moments) const {
    moments.origin.assign(origin_.begin(), origin_.end());
    clear_sums(moments);
    for (std::int64_t group = 2 * begin; group < 2 * end; ++group)
      add_group(sums_.data() + 2 * group * width(), group % 2 != 0, moments);
  }

  /// Call visit(place, slice) for each row of a node.
  template <class Visit>
  void visit_rows(const NodeRows& rows, const Visit& visit) const {
    constexpr std::int64_t piece = 256;
    std::int32_t slice[piece];  // several are found at once
    for (std::int64_t begin = 0; begin < rows.size(); begin += piece) {
      const std::int64_t n = std::min(piece, rows.size() - begin);
      for (std::int64_t i = 0; i < n; ++i) slice[i] = find(rows.known[begin + i]);
      for (std::int64_t i = 0; i < n; ++i) visit(begin + i, slice[i]);
    }
  }

  std::vector<std::int64_t> count_rows(const NodeRows& rows) const {
    std::vector<std::int64_t> count(n_slices, 0);
    visit_rows(rows, [&](std::int64_t, std::int32_t slice) { ++count[slice]; });
    return count;
  }

  /// The edge that the fewest rows of the children are beyond.
  Edge find_edge(const NodeRows& small, const NodeRows& large) const {
    const std::vector<std::int64_t> n_small = count_rows(small);
    const std::vector<std::int64_t> n_large = count_rows(large);
    std::int64_t small_before = 0, large_before = 0;
    Edge best{0, true, small.size()};
    for (std::int64_t k = 0; k < n_slices; ++k) {
      small_before += n_small[k];
      large_before += n_large[k];
      const std::int64_t if_low = large_before + (small.size() - small_before);
      const std::int64_t if_high = small_before + (large.size() - large_before);
      if (if_low < best.n_misfits) best = {k + 1, true, if_low};
      if (if_high < best.n_misfits) best = {k + 1, false, if_high};
    }
    return best;
  }

  template <class T, class Test>
  Moments sum_misfits(const Table<T>& table, const NodeRows& rows, std::int64_t n_most,
                      const Test& is_misfit, const StopFlag& stop) const {
    PageVector<std::uint32_t> row(n_most + 1);  // the one after the last is written, too
    std::int64_t n_targets = 0, n = 0;
    visit_rows(rows, [&](std::int64_t i, std::int32_t slice) {
      row[n] = rows.target.row[i];  // whether it counts is hard to predict
      n += is_misfit(slice);
      if (i + 1 == rows.target.size) n_targets = n;
    });
    assert(n <= n_most);
    Moments moments(width(), false);
    moments.origin.assign(origin_.begin(), origin_.end());
    const RowSet target{row.data(), n_targets, nullptr};
    const RowSet rest{row.data() + n_targets, n - n_targets, nullptr};
    sum_exactly(table, {target, rest}, moments, stop);
    return moments;
  }

  float low_ = 0.0f, per_unit_ = 0.0f;
  float last_ = 0.0f;          // number of the last slice
  PageVector<double> origin_;  // [width]
  PageVector<double> sums_;    // [n_slices, rest or targets, sums or squares, width]
};

}  // namespace lhtree
