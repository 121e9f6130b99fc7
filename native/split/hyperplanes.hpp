// The hyperplanes that a node tries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "old/random.hpp"
#include "old/stop.hpp"
#include "split/constraints.hpp"
#include "split/projection.hpp"

namespace lhtree::split {

constexpr double rows_per_term = 4.0;  // of a node, by weight

struct HyperplaneSettings {
  std::int64_t n_hyperplanes = 0;  // all drawn columns, their halves, their quarters, ...
  std::int64_t max_terms = 0;      // columns that are drawn
  double shrinkage = 0.3;          // of their correlations
  int weight_shift = 0;            // bits that weights of rows lose in directions
  double unit_weight = 1.0;        // what a row of weight one weighs
};

/// Which of p columns hyperplane `number` uses: all, then each half, each quarter, ...
struct Part {
  std::int64_t first, last;

  Part(std::int64_t number, std::int64_t p) {
    std::int64_t n_parts = 1;
    for (; number >= n_parts; n_parts *= 2) number -= n_parts;
    first = p * number / n_parts;
    last = p * (number + 1) / n_parts;
  }
};

/// Tries the hyperplanes of a node.
template <class Row, base::EncodedTable Table>
class HyperplaneSearch {
 public:
  using Sums = typename Row::Sums;

  /// A search keeps at most so many values of a node's rows. It ends early, with any split, once
  /// `stop` is set.
  HyperplaneSearch(const Table& table, const Limits& limits, const Constraints& constraints,
                   const HyperplaneSettings& settings, std::int64_t most_kept, const StopFlag& stop)
      : table_(table),
        constraints_(constraints),
        settings_(settings),
        stop_(stop),
        columns_(most_kept),
        projections_(limits) {
    for (std::int64_t j = 0; j < table.layout.n_columns(); ++j)
      if (!table.layout.column[j].is_category) numbers_.push_back(static_cast<std::int32_t>(j));
  }

  /// Replace `best` if a hyperplane has a larger score, and list which rows it sends left. The
  /// node has n rows, draws by `key` and has some freedom under the constraints.
  void run(const std::uint32_t* row, std::int64_t n, const Row* gradient, const Sums& whole,
           std::uint64_t key, const Freedom& freedom, Split<Sums>& best,
           std::vector<std::uint8_t>& goes_left) {
    draw_columns(draw_key(key), freedom.groups, count_terms(weigh(whole, n)));
    run_drawn(row, n, gradient, whole, freedom, best, goes_left);
  }

  /// The same with the first of the columns given, of which those of numbers count; with groups,
  /// those of one of them.
  void run_among(const std::vector<std::int32_t>& columns, const std::uint32_t* row, std::int64_t n,
                 const Row* gradient, const Sums& whole, std::uint64_t key, const Freedom& freedom,
                 Split<Sums>& best, std::vector<std::uint8_t>& goes_left) {
    const bool has_groups = !constraints_.group.empty();
    const std::vector<std::int32_t>* group =
        has_groups ? draw_group(draw_key(key), freedom.groups) : &numbers_;
    if (!group) return;
    const std::int64_t most = count_terms(weigh(whole, n));
    drawn_.clear();
    for (const std::int32_t j : columns)
      if (is_number(j) && static_cast<std::int64_t>(drawn_.size()) < most &&
          (!has_groups || std::binary_search(group->begin(), group->end(), j)))
        drawn_.push_back(j);
    run_drawn(row, n, gradient, whole, freedom, best, goes_left);
  }

 private:
  /// Try hyperplanes over the columns drawn.
  void run_drawn(const std::uint32_t* row, std::int64_t n, const Row* gradient, const Sums& whole,
                 const Freedom& freedom, Split<Sums>& best, std::vector<std::uint8_t>& goes_left) {
    if (drawn_.size() < 2) return;
    measure(row, n, gradient);
    if (columns_.size() < 2 || stop_) return;
    const bool is_small = weigh(whole, n) <= small_node * settings_.unit_weight;
    for (std::int64_t k = 0; k < settings_.n_hyperplanes && !stop_; ++k) {
      const Part part(k, columns_.size());
      const Direction direction = compute_direction(columns_, moments_, part.first, part.last,
                                                    settings_.shrinkage, constraints_);
      if (direction.hyperplane.is_empty()) continue;
      const StepBounds* bounds = constraints_.is_monotone() ? &freedom.bounds : nullptr;
      const int order = constraints_.order_of(direction.hyperplane);
      projections_.start(direction, n, is_small);
      visit_batches(n, [&](std::int64_t begin, std::int64_t m) {
        columns_.load(table_, row + begin, begin, m, part.first, part.last);
        projections_.add(columns_, part.first, part.last, row + begin, gradient);
      });
      if (!stop_ && projections_.choose(row, gradient, whole, bounds, order, best))
        projections_.list_sides(goes_left);
    }
  }

  /// Call look(begin, n) for the batches of a node of n rows.
  template <class Look>
  void visit_batches(std::int64_t n, const Look& look) const {
    for (std::int64_t begin = 0; begin < n && !stop_; begin += NodeColumns::batch)
      look(begin, std::min(NodeColumns::batch, n - begin));
  }

  /// Learn the products of the columns that have two values.
  void measure(const std::uint32_t* row, std::int64_t n, const Row* gradient) {
    columns_.start(drawn_, n);
    visit_batches(n, [&](std::int64_t begin, std::int64_t m) {
      read_weights(row + begin, m, gradient);
      columns_.look_at(table_, row + begin, begin, m, weights());
    });
    columns_.choose(table_.layout);
    if (columns_.size() < 2) return;
    moments_.start(columns_.size());
    visit_batches(n, [&](std::int64_t begin, std::int64_t m) {
      read_weights(row + begin, m, gradient);
      read_gradients(row + begin, m, gradient);
      columns_.load(table_, row + begin, begin, m, 0, columns_.size());
      columns_.center_all();
      moments_.add(columns_, gradient_.data(), weights());
    });
    moments_.finish();
  }

  bool is_number(std::int32_t column) const { return !table_.layout.column[column].is_category; }

  /// The columns of the group with the smallest hash, of those with two numbers or more; null if
  /// there is none.
  const std::vector<std::int32_t>* draw_group(std::uint64_t key,
                                              const std::vector<std::int32_t>& groups) const {
    const std::uint64_t draws = hash64(key, group_draws);
    const std::vector<std::int32_t>* best = nullptr;
    std::uint64_t least = 0;
    for (const std::int32_t number : groups) {
      const std::vector<std::int32_t>& group = constraints_.group[number];
      const std::uint64_t hash = hash64(draws, static_cast<std::uint64_t>(number));
      if (best && hash >= least) continue;
      if (std::count_if(group.begin(), group.end(), [&](auto j) { return is_number(j); }) < 2)
        continue;
      best = &group;
      least = hash;
    }
    return best;
  }

  /// How many columns a node draws at most: so many that there are rows for each.
  std::int64_t count_terms(double weight) const {
    const double affordable = std::floor(weight / (rows_per_term * settings_.unit_weight));
    return std::min(settings_.max_terms, static_cast<std::int64_t>(affordable));
  }

  /// The columns of numbers with the smallest hashes, in their order; with groups, of one of them.
  void draw_columns(std::uint64_t key, const std::vector<std::int32_t>& groups, std::int64_t most) {
    hash_.clear();
    const std::vector<std::int32_t>* group =
        constraints_.group.empty() ? &numbers_ : draw_group(key, groups);
    if (group)
      for (const std::int32_t j : *group)
        if (is_number(j)) hash_.push_back({hash64(key, static_cast<std::uint64_t>(j)), j});
    const auto n = std::min<std::int64_t>(hash_.size(), most);
    std::partial_sort(hash_.begin(), hash_.begin() + n, hash_.end());
    drawn_.clear();
    for (std::int64_t k = 0; k < n; ++k) drawn_.push_back(hash_[k].second);
  }

  static double weigh([[maybe_unused]] const Sums& whole, std::int64_t n_rows) {
    if constexpr (Row::has_weight) return static_cast<double>(whole.w);
    return static_cast<double>(n_rows);
  }

  const std::int64_t* weights() const { return Row::has_weight ? weight_.data() : nullptr; }

  void read_weights([[maybe_unused]] const std::uint32_t* row, [[maybe_unused]] std::int64_t n,
                    [[maybe_unused]] const Row* gradient) {
    if constexpr (Row::has_weight) {
      weight_.resize(n);
      for (std::int64_t i = 0; i < n; ++i)
        weight_[i] = gradient[row[i]].weight() >> settings_.weight_shift;
    }
  }

  /// Gradients in 15 bits.
  void read_gradients(const std::uint32_t* row, std::int64_t n, const Row* gradient) {
    constexpr int shift = stats::gradient_bits - short_bits;
    constexpr std::int64_t most = (1 << short_bits) - 1;
    gradient_.resize(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t g = (gradient[row[i]].gradient() + (1 << (shift - 1))) >> shift;
      gradient_[i] = static_cast<std::int16_t>(std::min(g, most));
    }
  }

  static constexpr std::uint64_t group_draws = ~std::uint64_t{6};  // never the number of a column

  const Table& table_;
  const Constraints& constraints_;
  HyperplaneSettings settings_;
  const StopFlag& stop_;
  std::vector<std::int32_t> numbers_, drawn_;
  std::vector<std::pair<std::uint64_t, std::int32_t>> hash_;
  std::vector<std::int16_t> gradient_;
  std::vector<std::int64_t> weight_;
  NodeColumns columns_;
  Moments moments_;
  ProjectionSearch<Row> projections_;
};

}  // namespace lhtree::split
