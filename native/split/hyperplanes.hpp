// The hyperplanes that a node tries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/team.hpp"
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

/// Tries the hyperplanes of a node; a team may share the passes over its rows.
template <class Row, base::EncodedTable Table>
class HyperplaneSearch {
 public:
  using Sums = typename Row::Sums;

  /// A search keeps at most so many values of a node's rows. It ends early, with any split, once
  /// `stop` is set. `team` is null for a thread alone.
  HyperplaneSearch(const Table& table, const Limits& limits, const Constraints& constraints,
                   const HyperplaneSettings& settings, std::int64_t most_kept, const StopFlag& stop,
                   base::Team* team = nullptr)
      : table_(table),
        constraints_(constraints),
        settings_(settings),
        stop_(stop),
        team_(team),
        columns_(most_kept),
        projections_(limits),
        lane_(team ? team->size() : 1),
        batch_(lane_.size()) {
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
      project(direction, part, row, n, is_small, gradient);
      const auto get_bins = [&](std::int64_t i) -> auto& { return lane_[i].bins; };
      const auto n_lanes = static_cast<std::int64_t>(lane_.size());
      if (!stop_ &&
          projections_.choose(row, gradient, whole, bounds, order, n_lanes, get_bins, best))
        projections_.list_sides(goes_left);
    }
  }

  /// What a thread needs.
  struct alignas(64) Lane {
    std::vector<std::int16_t> gradient;
    std::vector<std::int64_t> weight;
    Moments moments;
    ProjectionBins<Row> bins;

    const std::int64_t* weights() const { return Row::has_weight ? weight.data() : nullptr; }
  };

  /// Call look(begin, n, lane) for the batches of a node of n rows.
  template <class Look>
  void visit_batches(std::int64_t n, const Look& look) {
    const std::int64_t n_lanes = lane_.size(), most = NodeColumns::most_rows;
    const std::int64_t n_rows =
        n_lanes > 1 ? std::clamp(n / (2 * n_lanes), least_rows, most) : most;
    const auto look_at = [&](std::int64_t begin, std::int64_t lane) {
      if (!stop_) look(begin, std::min(n_rows, n - begin), lane);
    };
    if (n_lanes > 1)
      return team_->share((n + n_rows - 1) / n_rows,
                          [&](std::int64_t i, std::int64_t lane) { look_at(i * n_rows, lane); });
    for (std::int64_t begin = 0; begin < n; begin += n_rows) look_at(begin, 0);
  }

  /// Learn the products of the columns that have two values.
  void measure(const std::uint32_t* row, std::int64_t n, const Row* gradient) {
    columns_.start(drawn_, n, batch_);
    visit_batches(n, [&](std::int64_t begin, std::int64_t m, std::int64_t i) {
      read_weights(row + begin, m, gradient, lane_[i].weight);
      columns_.look_at(table_, row + begin, begin, m, lane_[i].weights(), batch_[i]);
    });
    columns_.choose(table_.layout, batch_);
    if (columns_.size() < 2) return;
    for (Lane& lane : lane_) lane.moments.start(columns_.size());
    visit_batches(n, [&](std::int64_t begin, std::int64_t m, std::int64_t i) {
      Lane& lane = lane_[i];
      read_weights(row + begin, m, gradient, lane.weight);
      read_gradients(row + begin, m, gradient, lane.gradient);
      columns_.load_all(table_, row + begin, begin, m, batch_[i]);
      lane.moments.add(batch_[i], lane.gradient.data(), lane.weights());
    });
    moments_.start(columns_.size());
    for (const Lane& lane : lane_) moments_ += lane.moments;
    moments_.finish();
  }

  void project(const Direction& direction, const Part& part, const std::uint32_t* row,
               std::int64_t n, bool is_small, const Row* gradient) {
    projections_.start(direction, columns_, part.first, part.last, n, is_small);
    for (Lane& lane : lane_) lane.bins.clear();
    visit_batches(n, [&](std::int64_t begin, std::int64_t m, std::int64_t i) {
      columns_.load(table_, row + begin, begin, m, part.first, part.last, batch_[i]);
      projections_.add(columns_, batch_[i], begin, row + begin, gradient, lane_[i].bins);
    });
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

  void read_weights([[maybe_unused]] const std::uint32_t* row, [[maybe_unused]] std::int64_t n,
                    [[maybe_unused]] const Row* gradient,
                    [[maybe_unused]] std::vector<std::int64_t>& weight) const {
    if constexpr (Row::has_weight) {
      weight.resize(n);
      for (std::int64_t i = 0; i < n; ++i)
        weight[i] = gradient[row[i]].weight() >> settings_.weight_shift;
    }
  }

  /// Gradients in 15 bits.
  static void read_gradients(const std::uint32_t* row, std::int64_t n, const Row* gradient,
                             std::vector<std::int16_t>& result) {
    constexpr int shift = stats::gradient_bits - short_bits;
    constexpr std::int64_t most = (1 << short_bits) - 1;
    result.resize(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t g = (gradient[row[i]].gradient() + (1 << (shift - 1))) >> shift;
      result[i] = static_cast<std::int16_t>(std::min(g, most));
    }
  }

  static constexpr std::int64_t least_rows = 1 << 9;  // of a batch that is worth a helper
  static constexpr std::uint64_t group_draws = ~std::uint64_t{6};  // never the number of a column

  const Table& table_;
  const Constraints& constraints_;
  HyperplaneSettings settings_;
  const StopFlag& stop_;
  base::Team* team_;
  std::vector<std::int32_t> numbers_, drawn_;
  std::vector<std::pair<std::uint64_t, std::int32_t>> hash_;
  NodeColumns columns_;
  Moments moments_;
  ProjectionSearch<Row> projections_;
  std::vector<Lane> lane_;  // one for each thread
  std::vector<ColumnBatch> batch_;
};

}  // namespace lhtree::split
