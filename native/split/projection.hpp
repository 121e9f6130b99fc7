// The cut of largest gain along a hyperplane.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "base/instructions.hpp"
#include "base/products.hpp"
#include "split/direction.hpp"
#include "split/gain.hpp"

namespace lhtree::split {

constexpr std::int64_t small_node = 256;  // rows, by weight, up to which all cuts are looked at
constexpr int projection_bins = 256;      // for more, over eight standard deviations or more

/// What a thread notes of the projections of a larger node: sums of their bins.
template <class Row>
struct ProjectionBins {
  using Sums = typename Row::Sums;

  Row word[projection_bins];
  Sums sums[projection_bins];
  std::int64_t n_in_words = 0;
  PageVector<std::int64_t> projection;  // of a batch

  void clear() {
    std::fill(std::begin(sums), std::end(sums), Sums{});
    std::fill(std::begin(word), std::end(word), Row{});
    n_in_words = 0;
  }

  void add(const std::uint8_t* bin, const std::uint32_t* row, std::int64_t n, const Row* gradient) {
    static_assert(NodeColumns::most_rows <= Row::rows_per_word);
    if (n_in_words + n > Row::rows_per_word) empty_words();
    for (std::int64_t i = 0; i < n; ++i) word[bin[i]] += gradient[row[i]];
    n_in_words += n;
  }

  void empty_words() {
    if (n_in_words == 0) return;
    for (int b = 0; b < projection_bins; ++b) {
      word[b].add_to(sums[b]);
      word[b] = Row{};
    }
    n_in_words = 0;
  }
};

/// Looks for the cut of largest gain among the projections of a node.
template <class Row>
class ProjectionSearch {
 public:
  using Sums = typename Row::Sums;
  using Bins = ProjectionBins<Row>;

  explicit ProjectionSearch(const Limits& limits) : limits_(limits) {}

  /// Begin with the n rows of a node, whose columns from `first` to `last` have those of the
  /// hyperplane in their order. A small one keeps its projections, a larger one their bins.
  void start(const Direction& direction, const NodeColumns& columns, std::int64_t first,
             std::int64_t last, std::int64_t n, bool is_small) {
    direction_ = &direction;
    is_small_ = is_small;
    n_ = n;
    if (!is_small) place_bins();
    remake(projection_, is_small ? n : 0);
    remake(bin_of_, is_small ? 0 : n);
    const Hyperplane& hyperplane = direction.hyperplane;
    kept_.clear();
    for (std::int64_t a = first; a < last; ++a)
      if (kept_.size() < hyperplane.column.size() &&
          columns.column(a) == hyperplane.column[kept_.size()])
        kept_.push_back(a);
  }

  /// Project the rows of a batch, of which the first is number `begin` of the node. Threads may
  /// do this side by side, each with bins of its own, which were clear when they began.
  void add(const NodeColumns& columns, const ColumnBatch& batch, std::int64_t begin,
           const std::uint32_t* row, const Row* gradient, Bins& bins) {
    const std::int64_t n = batch.n;
    if (is_small_) return project(columns, batch, projection_.data() + begin);
    remake(bins.projection, NodeColumns::most_rows);
    const std::int64_t* projection = bins.projection.data();
    project(columns, batch, bins.projection.data());
    std::uint8_t* bin = bin_of_.data() + begin;
    const std::int64_t start = start_;
    const int shift = shift_;
    base::run_wide([=]() LHTREE_FLAT {
      for (std::int64_t i = 0; i < n; ++i)
        bin[i] = static_cast<std::uint8_t>(
            std::clamp<std::int64_t>((projection[i] - start) >> shift, 0, projection_bins - 1));
    });
    bins.add(bin, row, n, gradient);
  }

  /// Replace `best` if there is a cut of the projections of a larger score; returns whether.
  /// `bounds` may be null; else `order` is that of the hyperplane. Bins are those of `n_lanes`
  /// threads.
  template <class GetBins>
  bool choose(const std::uint32_t* row, const Row* gradient, const Sums& whole,
              const StepBounds* bounds, int order, std::int64_t n_lanes, const GetBins& get_bins,
              Split<Sums>& best) {
    whole_ = whole;
    bounds_ = bounds;
    order_ = order;
    if (bounds) node_score_ = score_node(whole, limits_, *bounds);
    score_ = best.score;
    is_found_ = false;
    if (is_small_)
      look_at_all(row, gradient);
    else
      look_at_bins(n_lanes, get_bins);
    const std::int64_t n_more = direction_->hyperplane.n_terms() - 1;
    const double net = score_ - limits_.term_price * static_cast<double>(n_more);
    if (!is_found_ || !(net > best.score)) return false;
    best = {net, -1, -1, false, {}, direction_->hyperplane, threshold_, left_};
    return true;
  }

  /// Which rows go left at the cut that was found last.
  void list_sides(std::vector<std::uint8_t>& goes_left) const {
    goes_left.resize(n_);
    std::uint8_t* result = goes_left.data();
    const std::int64_t n = n_, end = place_, *projection = projection_.data();
    const std::uint8_t* bin = bin_of_.data();
    if (is_small_)
      base::run_wide([=]() LHTREE_FLAT {
        for (std::int64_t i = 0; i < n; ++i) result[i] = projection[i] < end;
      });
    else
      base::run_wide([=]() LHTREE_FLAT {
        for (std::int64_t i = 0; i < n; ++i) result[i] = bin[i] < end;
      });
  }

 private:
  void place_bins() {
    shift_ = 0;
    while (std::ldexp(1.0, shift_) < direction_->std / 32.0) ++shift_;
    start_ = direction_->middle - (std::int64_t{128} << shift_);
  }

  void project(const NodeColumns& columns, const ColumnBatch& batch, std::int64_t* result) const {
    const Hyperplane& hyperplane = direction_->hyperplane;
    base::sum_products(
        batch.n, hyperplane.n_terms(),
        [&](std::int64_t k) { return std::int64_t{hyperplane.weight[k]}; },
        [&](std::int64_t k) { return columns.z(kept_[k], batch); }, result);
  }

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

  template <class GetBins>
  void look_at_bins(std::int64_t n_lanes, const GetBins& get_bins) {
    for (std::int64_t k = 0; k < n_lanes; ++k) get_bins(k).empty_words();
    Sums left;
    for (int b = 0; b + 1 < projection_bins; ++b) {
      for (std::int64_t k = 0; k < n_lanes; ++k) left += get_bins(k).sums[b];
      look_at(left, start_ + (std::int64_t{b + 1} << shift_), b + 1);
    }
  }

  /// Left are the projections, or their bins, below `place`.
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
  const Direction* direction_ = nullptr;
  bool is_small_ = false, is_found_ = false;
  Sums whole_, left_;
  const StepBounds* bounds_ = nullptr;
  double node_score_ = 0.0, order_ = 0.0;  // within the bounds
  double score_ = 0.0;
  std::int64_t threshold_ = 0, place_ = 0;
  std::int64_t n_ = 0;  // rows
  std::int64_t start_ = 0;
  int shift_ = 0;
  std::vector<std::int64_t> kept_;  // of the columns, those of the hyperplane
  PageVector<std::int64_t> projection_;
  PageVector<std::uint8_t> bin_of_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> sorted_;
};

}  // namespace lhtree::split
