// The cut of largest gain along a hyperplane.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "split/direction.hpp"
#include "split/gain.hpp"

namespace lhtree::split {

constexpr std::int64_t small_node = 256;  // rows up to which all cuts are looked at
constexpr int projection_bins = 256;      // for more, over eight standard deviations or more

/// Rows whose projection is below the threshold go left.
struct ProjectionCut {
  double score = 0.0;  // 0: there is no cut
  std::int64_t threshold = 0;
  stats::Sums left;
};

/// Looks for the cut of largest gain among the projections of a node.
class ProjectionSearch {
 public:
  explicit ProjectionSearch(const Limits& limits) : limits_(limits) {}

  ProjectionCut run(const Direction& direction, const NodeColumns& columns,
                    const std::uint32_t* row, const stats::Packed* packed,
                    const stats::Sums& whole) {
    project(direction.hyperplane, columns);
    whole_ = whole;
    best_ = {};
    if (columns.n_rows() <= small_node)
      look_at_all(row, packed);
    else
      look_at_bins(direction, row, packed);
    return best_;
  }

 private:
  void project(const Hyperplane& hyperplane, const NodeColumns& columns) {
    const std::int64_t n = columns.n_rows();
    projection_.assign(n, 0);
    std::size_t k = 0;  // the columns of a hyperplane are some of those gathered, in their order
    for (std::size_t a = 0; a < columns.size(); ++a) {
      if (k == hyperplane.column.size() || columns.column(a) != hyperplane.column[k]) continue;
      const std::int64_t weight = hyperplane.weight[k++];
      const std::int32_t* z = columns.z(a);
      for (std::int64_t i = 0; i < n; ++i) projection_[i] += weight * z[i];
    }
  }

  void look_at_all(const std::uint32_t* row, const stats::Packed* packed) {
    sorted_.clear();
    for (std::size_t i = 0; i < projection_.size(); ++i)
      sorted_.push_back({projection_[i], packed[row[i]]});
    std::sort(sorted_.begin(), sorted_.end());
    stats::Sums left;
    for (std::size_t i = 0; i + 1 < sorted_.size(); ++i) {
      left.add(sorted_[i].second);
      const std::int64_t here = sorted_[i].first, next = sorted_[i + 1].first;
      if (here != next) look_at(left, here + (next - here + 1) / 2);
    }
  }

  void look_at_bins(const Direction& direction, const std::uint32_t* row,
                    const stats::Packed* packed) {
    int shift = 0;
    while (std::ldexp(1.0, shift) < direction.std / 32.0) ++shift;
    const std::int64_t start = direction.middle - (std::int64_t{128} << shift);
    const auto n = static_cast<std::int64_t>(projection_.size());
    stats::Sums bin[projection_bins];
    stats::Packed word[projection_bins] = {};
    for (std::int64_t begin = 0; begin < n; begin += stats::rows_per_word) {
      const std::int64_t end = std::min(n, begin + stats::rows_per_word);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t place = (projection_[i] - start) >> shift;
        word[std::clamp<std::int64_t>(place, 0, projection_bins - 1)] += packed[row[i]];
      }
      for (int b = 0; b < projection_bins; ++b) bin[b].add(std::exchange(word[b], 0));
    }
    stats::Sums left;
    for (int b = 0; b + 1 < projection_bins; ++b) {
      left.g += bin[b].g;
      left.h += bin[b].h;
      look_at(left, start + (std::int64_t{b + 1} << shift));
    }
  }

  void look_at(const stats::Sums& left, std::int64_t threshold) {
    const double score = compute_cut_score(left, whole_, limits_);
    if (score > best_.score) best_ = {score, threshold, left};
  }

  Limits limits_;
  stats::Sums whole_;
  ProjectionCut best_;
  std::vector<std::int64_t> projection_;
  std::vector<std::pair<std::int64_t, stats::Packed>> sorted_;
};

}  // namespace lhtree::split
