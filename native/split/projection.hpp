// The cut of largest gain along a hyperplane.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/instructions.hpp"
#include "split/direction.hpp"
#include "split/gain.hpp"

namespace lhtree::split {

constexpr std::int64_t small_node = 256;  // rows, by weight, up to which all cuts are looked at
constexpr int projection_bins = 256;      // for more, over eight standard deviations or more

/// Looks for the cut of largest gain among the projections of a node.
template <class Row>
class ProjectionSearch {
 public:
  using Sums = typename Row::Sums;

  explicit ProjectionSearch(const Limits& limits) : limits_(limits) {}

  /// Project gathered columns, among which are those of the hyperplane, in their order.
  void project(const Hyperplane& hyperplane, const NodeColumns& columns) {
    const std::int64_t n = columns.n_rows();
    projection_.assign(n, 0);
    std::int64_t k = 0;
    for (std::int64_t a = 0; a < columns.size() && k < hyperplane.n_terms(); ++a) {
      if (columns.column(a) != hyperplane.column[k]) continue;
      const std::int32_t weight = hyperplane.weight[k++];
      const std::int32_t* z = columns.z(a);
      std::int64_t* projection = projection_.data();
      base::run_wide([=]() LHTREE_FLAT {
        for (std::int64_t i = 0; i < n; ++i) projection[i] += std::int64_t{weight} * z[i];
      });
    }
  }

  /// Replace `best` if there is a cut of the projections of a larger score; returns whether.
  /// `bounds` may be null; else `order` is that of the hyperplane.
  bool run(const Direction& direction, const std::uint32_t* row, const Row* gradient,
           const Sums& whole, bool is_small, const StepBounds* bounds, int order,
           Split<Sums>& best) {
    whole_ = whole;
    bounds_ = bounds;
    order_ = order;
    if (bounds) node_score_ = score_node(whole, limits_, *bounds);
    score_ = best.score;
    is_found_ = false;
    if (is_small)
      look_at_all(row, gradient);
    else
      look_at_bins(direction, row, gradient);
    if (!is_found_) return false;
    best = {score_, -1, -1, false, {}, direction.hyperplane, threshold_, left_};
    return true;
  }

  /// Which rows go left at the cut that was found last.
  void list_sides(std::vector<std::uint8_t>& goes_left) const {
    goes_left.resize(projection_.size());
    const std::int64_t* place = projection_.data();
    std::uint8_t* result = goes_left.data();
    const auto n = static_cast<std::int64_t>(projection_.size());
    const std::int64_t end = place_;
    base::run_wide([=]() LHTREE_FLAT {
      for (std::int64_t i = 0; i < n; ++i) result[i] = place[i] < end;
    });
  }

 private:
  void look_at_all(const std::uint32_t* row, const Row* gradient) {
    sorted_.resize(projection_.size());
    for (std::size_t i = 0; i < projection_.size(); ++i)
      sorted_[i] = {projection_[i], static_cast<std::uint32_t>(i)};
    std::sort(sorted_.begin(), sorted_.end());
    Sums left;
    for (std::size_t i = 0; i + 1 < sorted_.size(); ++i) {
      gradient[row[sorted_[i].second]].add_to(left);
      const std::int64_t here = sorted_[i].first, next = sorted_[i + 1].first;
      const std::int64_t middle = here + (next - here + 1) / 2;
      if (here != next) look_at(left, middle, middle);
    }
  }

  void look_at_bins(const Direction& direction, const std::uint32_t* row, const Row* gradient) {
    int shift = 0;
    while (std::ldexp(1.0, shift) < direction.std / 32.0) ++shift;
    const std::int64_t start = direction.middle - (std::int64_t{128} << shift);
    const auto n = static_cast<std::int64_t>(projection_.size());
    std::int64_t* place = projection_.data();
    base::run_wide([=]() LHTREE_FLAT {
      for (std::int64_t i = 0; i < n; ++i)
        place[i] = std::clamp<std::int64_t>((place[i] - start) >> shift, 0, projection_bins - 1);
    });
    Sums bin[projection_bins];
    Row word[projection_bins] = {};
    for (std::int64_t begin = 0; begin < n; begin += Row::rows_per_word) {
      const std::int64_t end = begin + std::min(n - begin, Row::rows_per_word);
      for (std::int64_t i = begin; i < end; ++i) word[place[i]] += gradient[row[i]];
      for (int b = 0; b < projection_bins; ++b) {
        word[b].add_to(bin[b]);
        word[b] = Row{};
      }
    }
    Sums left;
    for (int b = 0; b + 1 < projection_bins; ++b) {
      left += bin[b];
      look_at(left, start + (std::int64_t{b + 1} << shift), b + 1);
    }
  }

  /// Left are the entries of `projection_`, which may have become bins, below `place`.
  void look_at(const Sums& left, std::int64_t threshold, std::int64_t place) {
    const double score = bounds_
                             ? compute_gain(left, whole_, limits_, node_score_, *bounds_, order_)
                             : compute_split_score(left, whole_, limits_);
    if (!(score > score_)) return;
    score_ = score;
    threshold_ = threshold;
    place_ = place;
    left_ = left;
    is_found_ = true;
  }

  const Limits& limits_;
  Sums whole_, left_;
  const StepBounds* bounds_ = nullptr;
  double node_score_ = 0.0, order_ = 0.0;  // within the bounds
  double score_ = 0.0;
  bool is_found_ = false;
  std::int64_t threshold_ = 0, place_ = 0;
  std::vector<std::int64_t> projection_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> sorted_;
};

}  // namespace lhtree::split
