// Sending blocks of rows down the trees of an ensemble: the rows of a block are divided node by
// node, so that what a node does is looked up once for all of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/products.hpp"
#include "base/raw_rows.hpp"
#include "predict/walk.hpp"

namespace lhtree::predict {

/// Walks blocks of rows; each thread has its own.
template <class T>
class BlockWalker {
 public:
  BlockWalker(const PreparedView& view, const std::vector<base::Column>& columns)
      : view_(view), columns_(columns), slot_(columns.size(), -1) {
    const std::int64_t n_columns = view.n_singles + view.n_used / 2;
    most_ = std::clamp<std::int64_t>(cache / std::max<std::int64_t>(n_columns, 1), 32, most_rows);
    for (std::int64_t k = 0; k < view.n_singles; ++k) slot_[view.singles[k]] = k;
    x_.resize(most_ * view.n_singles);
    z_.resize(most_ * view.n_used);
    for (std::int64_t k = 0; k < view.n_used; ++k)
      placers_.push_back(base::make_lane_placer(columns[view.used[k]].grid));
  }

  /// Call visit(row, tree, node, leaf) for the leaf of each row from `begin` to `end` in each tree:
  /// its number among the nodes of the tree, and among all leaves.
  template <class Visit>
  void run(const T* X, std::int64_t begin, std::int64_t end, const Visit& visit) {
    for (; begin < end; begin += most_) {
      n_ = std::min(most_, end - begin);
      read(X + begin * static_cast<std::int64_t>(columns_.size()));
      for (std::int64_t tree = 0; tree < view_.trees.n_trees; ++tree)
        divide(view_.steps + view_.trees.tree_start[tree],
               [&](std::int64_t row, std::int64_t node, std::int64_t leaf) {
                 visit(begin + row, tree, node, leaf);
               });
    }
  }

 private:
  static constexpr std::int64_t most_rows = 256;
  static constexpr std::int64_t few_rows = 16;    // of a node that go on one by one
  static constexpr std::int64_t cache = 1 << 16;  // values of a block

  struct Open {
    std::int64_t node, begin, end;
  };

  /// Read the columns that the trees use, column after column.
  void read(const T* X) {
    const auto d = static_cast<std::int64_t>(columns_.size());
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t k = 0; k < view_.n_singles; ++k)
        x_[k * most_ + i] = static_cast<double>(X[i * d + view_.singles[k]]);
    has_gaps_ = false;
    for (std::int64_t k = 0; k < view_.n_used; ++k) {
      for (std::int64_t i = 0; i < n_; ++i)
        turned_[i] = static_cast<double>(X[i * d + view_.used[k]]);
      has_gaps_ |= place(placers_[k], turned_, n_, z_.data() + k * most_);
    }
  }

  /// Place values on a grid; returns whether some are missing.
  static bool place(const base::LanePlacer& given, const double* x, std::int64_t n,
                    std::int32_t* z) {
    std::int32_t n_gaps = 0;
    std::int32_t* result = &n_gaps;
    base::run_wide([=]() LHTREE_FLAT {
      const base::LanePlacer placer = given;
      for (std::int64_t i = 0; i < n; ++i) z[i] = placer.place(x[i]);
      std::int32_t sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += z[i] == base::gap;
      *result = sum;
    });
    return n_gaps > 0;
  }

  /// Send the rows of the block down a tree.
  template <class Visit>
  void divide(const Step* root, const Visit& visit) {
    for (std::int64_t i = 0; i < n_; ++i) order_[i] = static_cast<std::uint16_t>(i);
    open_.assign(1, {0, 0, n_});
    while (!open_.empty()) {
      Open here = open_.back();
      open_.pop_back();
      while (root[here.node].kind() != Step::leaf) {
        if (here.end - here.begin <= few_rows) break;
        const Step step = root[here.node];
        const std::int64_t middle =
            here.begin + split(step, order_ + here.begin, here.end - here.begin);
        if (middle == here.begin) {
          here.node = step.left + 1;
          continue;
        }
        if (middle < here.end) open_.push_back({step.left + 1, middle, here.end});
        here = {step.left, here.begin, middle};
      }
      walk_few(root, here, visit);
    }
  }

  /// Send few rows on from a node, in turns: what one needs is fetched while others go on.
  template <class Visit>
  void walk_few(const Step* root, const Open& here, const Visit& visit) {
    const std::uint16_t* row = order_ + here.begin;
    const std::int64_t n = here.end - here.begin;
    if (root[here.node].kind() == Step::leaf) {
      const auto leaf = static_cast<std::int64_t>(root[here.node].payload);
      for (std::int64_t i = 0; i < n; ++i) visit(row[i], here.node, leaf);
      return;
    }
    std::int64_t node[few_rows];
    std::fill_n(node, n, here.node);
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::int64_t i = 0; i < n; ++i) {
        const Step step = root[node[i]];
        if (step.kind() == Step::leaf) continue;
        node[i] = step.left + !goes_left(step, row[i]);
        goes_on = true;
      }
    }
    for (std::int64_t i = 0; i < n; ++i)
      visit(row[i], node[i], static_cast<std::int64_t>(root[node[i]].payload));
  }

  bool goes_left(const Step& step, std::int64_t i) const {
    if (step.kind() == Step::hyperplane) {
      const EnsembleView& trees = view_.trees;
      std::int64_t sum = 0;
      for (std::int64_t k = trees.term_start[step.payload]; k < trees.term_start[step.payload + 1];
           ++k) {
        const std::int32_t value = column_of(k)[i];
        sum += std::int64_t{trees.coefficient[k]} * (value == base::gap ? trees.fill[k] : value);
      }
      return sum < trees.cut[step.payload];
    }
    const double x = x_[slot_[step.column()] * most_ + i];
    if (step.kind() == Step::category)
      return view_.trees.contains(step.payload, columns_[step.column()].look_up_code(x));
    const auto t = std::bit_cast<double>(step.payload);
    return step.missing_left() ? !(x >= t) : x < t;
  }

  /// Move the rows that go left to the front; returns their number.
  std::int64_t split(const Step& step, std::uint16_t* row, std::int64_t n) {
    if (step.kind() == Step::hyperplane) return split_by_hyperplane(step.payload, row, n);
    const double* x = x_.data() + slot_[step.column()] * most_;
    if (step.kind() == Step::category) {
      const base::Column& column = columns_[step.column()];
      return partition(row, n, [&](std::int64_t, std::int64_t i) {
        return view_.trees.contains(step.payload, column.look_up_code(x[i]));
      });
    }
    const auto t = std::bit_cast<double>(step.payload);
    if (step.missing_left())
      return partition(row, n, [=](std::int64_t, std::int64_t i) { return !(x[i] >= t); });
    return partition(row, n, [=](std::int64_t, std::int64_t i) { return x[i] < t; });
  }

  std::int64_t split_by_hyperplane(std::uint64_t plane, std::uint16_t* row, std::int64_t n) {
    const std::int64_t cut = view_.trees.cut[plane];
    const std::int64_t* sum = sum_;
    if (!has_gaps_ && 4 * n >= n_) {  // all rows of the block, side by side, are faster
      const std::int64_t first = view_.trees.term_start[plane];
      base::sum_products(
          n_, view_.trees.term_start[plane + 1] - first,
          [&](std::int64_t k) { return std::int64_t{view_.trees.coefficient[first + k]}; },
          [&](std::int64_t k) { return column_of(first + k); }, sum_);
      return partition(row, n, [=](std::int64_t, std::int64_t i) { return sum[i] < cut; });
    }
    has_gaps_ ? project<true>(plane, row, n) : project<false>(plane, row, n);
    return partition(row, n, [=](std::int64_t place, std::int64_t) { return sum[place] < cut; });
  }

  /// Project the rows listed, a few at a time.
  template <bool has_gaps>
  void project(std::uint64_t plane, const std::uint16_t* row, std::int64_t n) {
    const EnsembleView& trees = view_.trees;
    const std::int64_t first = trees.term_start[plane], last = trees.term_start[plane + 1];
    constexpr std::int64_t few = 4;
    for (std::int64_t begin = 0; begin < n; begin += few) {
      std::int64_t i[few], sum[few] = {};
      for (std::int64_t r = 0; r < few; ++r) i[r] = row[std::min(begin + r, n - 1)];
      for (std::int64_t k = first; k < last; ++k) {
        const std::int32_t* z = column_of(k);
        const std::int64_t weight = trees.coefficient[k];
        for (std::int64_t r = 0; r < few; ++r) {
          const std::int32_t value = z[i[r]];
          sum[r] += weight * (has_gaps && value == base::gap ? trees.fill[k] : value);
        }
      }
      std::copy_n(sum, few, sum_ + begin);
    }
  }

  const std::int32_t* column_of(std::int64_t term) const {
    return z_.data() + view_.term_position[term] * most_;
  }

  /// Move rows for which goes_left(place, row) holds to the front; returns their number.
  template <class GoesLeft>
  std::int64_t partition(std::uint16_t* row, std::int64_t n, const GoesLeft& goes_left) {
    std::uint16_t* right = right_;
    std::int64_t n_left = 0, n_right = 0;
    for (std::int64_t k = 0; k < n; ++k) {  // without a branch: both places are written
      const std::uint16_t each = row[k];
      const bool is_left = goes_left(k, each);
      row[n_left] = each;
      right[n_right] = each;
      n_left += is_left;
      n_right += !is_left;
    }
    std::copy_n(right, n_right, row + n_left);
    return n_left;
  }

  PreparedView view_;
  const std::vector<base::Column>& columns_;
  std::vector<std::int64_t> slot_;  // of the columns of single splits
  std::vector<base::LanePlacer> placers_;
  std::int64_t most_ = 0, n_ = 0;  // rows of a block
  bool has_gaps_ = false;
  std::vector<double> x_;        // [n_singles, most_]
  std::vector<std::int32_t> z_;  // [n_used, most_]
  std::vector<Open> open_;
  double turned_[most_rows];
  std::int64_t sum_[most_rows + 4];
  std::uint16_t order_[most_rows], right_[most_rows];
};

}  // namespace lhtree::predict
