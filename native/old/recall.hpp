// Projections that need not be computed.
//
// The purity rule cuts small pieces off a node, so the hyperplane of the large child is
// nearly parallel to that of its parent. Let s be the projection of a row x on earlier
// weights v, known from then, and w = a v + r the new weights. About the middle c of the
// table,
//
//   w x = a (s - v c) + w c + r (x - c),   |r (x - c)| <= |r| |x - c|.
//
// Rows that these bounds place strictly between the extremes of both classes decide
// nothing but their own side of the split, which is sure: their guess stands for their
// projection. All others are projected, so every number of the tree is exactly what it
// would be without.
//
// What is known lies in the order of the tree's rows and moves with them. Lengths are those of the
// table, so they would be read from all over it: rows that are sure by the longest one are passed
// over first, and few are left whose own length must be looked up.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "guess_kernels.hpp"
#include "node.hpp"
#include "pages.hpp"
#include "rules.hpp"
#include "table.hpp"

namespace lhtree {

/// Whether projections of such a tree may be guessed: what chooses its thresholds must not
/// look at those in between. Fewer columns are projected as fast as they are remembered.
inline bool may_recall(const Rules& rules, std::int64_t n_columns) {
  constexpr std::int64_t least_columns = 16;
  return rules.cut == Cut::purity && rules.min_samples_leaf == 0.0 &&
         rules.min_weight_fraction_leaf == 0.0 && n_columns >= least_columns;
}

/// Measure the rows of a table that has no missing values.
template <class T>
void measure_lengths(Table<T>& table) {
  auto& [middle, middle_length, length, longest] = table.lengths;
  middle.assign(table.width, 0.0);
  constexpr std::int64_t n_seen = 1024;  // any middle is right; a good one makes rows short
  const std::int64_t step = std::max<std::int64_t>(1, table.n_rows / n_seen);
  double n = 0.0;
  for (std::int64_t i = 0; i < table.n_rows; i += step) {
    n += 1.0;
    for (std::int64_t j = 0; j < table.n_columns; ++j)
      middle[j] += (static_cast<double>(table.row(i)[j]) - middle[j]) / n;
  }
  middle_length = 0.0;
  for (const double value : middle) middle_length += value * value;
  middle_length = std::sqrt(middle_length);
  length.resize(table.n_rows);
  longest = 0.0f;
  for (std::int64_t i = 0; i < table.n_rows; ++i) {
    length[i] = ShortLength(measure_row(table.row(i), middle.data(), table.n_columns));
    longest = length[i] <= longest ? longest : length[i];  // not a number, if they all are
  }
}

/// The training rows, measured if projections may be guessed.
template <class T>
Table<T> make_row_table(const T* values, std::int64_t n_rows, std::int64_t n_columns,
                        bool has_missing, const Rules& rules) {
  Table<T> table(values, n_rows, n_columns, has_missing);
  if (!has_missing && may_recall(rules, n_columns)) measure_lengths(table);
  return table;
}

/// What is known of the rows of a tree: their projections on earlier weights.
class Recall {
 public:
  explicit Recall(const RowLengths& lengths)
      : lengths_(lengths), new_weight_(lengths.middle.size()) {
    leave_near();
  }

  bool is_active() const { return !lengths_.length.empty(); }

  /// From now on projections on these weights are known; `anchor` gets the weights. Returns the
  /// projection of the middle, which is taken off what is kept.
  double start(const Terms& terms, std::vector<double>& anchor) const {
    anchor.resize(lengths_.middle.size());
    spread(terms, anchor);
    return dot(anchor, lengths_.middle);
  }

  /// Whether projections on the weights of the terms follow from those on the weights of `anchor`:
  /// they must not differ too much.
  bool can_guess(const Terms& terms, const std::vector<double>& anchor) {
    constexpr double most = 0.3;  // of the new weights' length may point elsewhere
    if (anchor.empty()) return false;
    const double square = dot(anchor, anchor);
    if (!(square > 0.0)) return false;
    spread(terms, new_weight_);
    const double factor = dot(new_weight_, anchor) / square;
    const double length = std::sqrt(dot(new_weight_, new_weight_));
    const double shift = dot(new_weight_, lengths_.middle);
    for (std::size_t j = 0; j < anchor.size(); ++j) new_weight_[j] -= factor * anchor[j];
    const double residual = std::sqrt(dot(new_weight_, new_weight_));
    if (!(residual <= most * length)) return false;
    // Rounding: of sums over all columns, and of what is kept in single precision.
    const double both = length + std::abs(factor) * std::sqrt(square);
    const double tiny = 4e-16 * static_cast<double>(anchor.size() + lane_count) * both;
    transfer_ = {factor, shift, residual * (1 + 1e-9) + tiny + 2.5e-7 * both,
                 2 * tiny * lengths_.middle_length + 1e-44 * std::abs(factor)};
    return true;
  }

  /// Guess the projections of a split from those on the weights of `anchor`, and list on the bench
  /// the places of the rows that are to be computed. Returns false if they are too many.
  bool guess(const NodeRows& rows, const std::vector<double>& anchor, Bench& bench) {
    if (!can_guess(bench.split.terms, anchor)) return false;
    bench.number.resize(rows.size());
    std::uint32_t* place = bench.number.data();
    const std::int64_t n_roughly = list_roughly(rows, place);
    const auto [low, high] = find_cover(rows, place, n_roughly);
    bench.n_listed = keep_outside(view(rows), transfer_, low, high, place, n_roughly);
    return bench.n_listed <= rows.size() / 2;
  }

  /// Divide the rows by their guesses, and list the places of those that may lie on either side:
  /// others than were listed before.
  void divide(const NodeRows& rows, Bench& bench) const {
    const double threshold = bench.split.threshold.value;
    std::uint32_t* place = bench.number.data();
    const std::int64_t n_roughly = mark_below(rows.known, rows.size(), transfer_, find_most_error(),
                                              threshold, bench.is_left.data(), place);
    bench.n_listed = keep_unsure(view(rows), transfer_, threshold, place, n_roughly);
  }

  /// Renumber the rows of a subtree: row[i] becomes i.
  void enter_near(const std::uint32_t* row, std::int64_t n) {
    near_length_.resize(n);
    for (std::int64_t i = 0; i < n; ++i) near_length_[i] = lengths_.length[row[i]];
    length_ = near_length_.data();
  }

  void leave_near() { length_ = lengths_.length.data(); }

 private:
  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    Lanes sum = fill(0.0);  // whole lanes: both are padded with zeros
    for (std::size_t j = 0; j < a.size(); j += lane_count) sum = sum + load(&a[j]) * load(&b[j]);
    return combine(sum);
  }

  static void spread(const Terms& terms, std::vector<double>& weight) {
    std::fill(weight.begin(), weight.end(), 0.0);
    for (std::int64_t k = 0; k < terms.size(); ++k) weight[terms.feature[k]] = terms.weight[k];
  }

  /// No row has more: most are sure by that, and their lengths need not be looked up.
  double find_most_error() const { return transfer_.find_error(lengths_.longest); }

  /// List the places of all rows that may lie outside of what both classes cover. Those that bound
  /// it are among them: no bound is further from the extreme of the guesses than the most error.
  std::int64_t list_roughly(const NodeRows& rows, std::uint32_t* place) const {
    const auto find_extremes = [&](const float* known, std::int64_t n) {
      return transfer_.guess(find_known_extremes(known, n));
    };
    const Extremes target = find_extremes(rows.known, rows.target.size);
    const Extremes rest = find_extremes(rows.known + rows.target.size, rows.rest.size);
    const double error = find_most_error();
    const double low = std::max(target.min, rest.min) + error;
    const double high = std::min(target.max, rest.max) - error;
    return list_outside(rows.known, rows.size(), transfer_, error, low, high, place);
  }

  /// What both classes cover for sure.
  struct Cover {
    double low, high;
  };

  /// Find it from the rows that are listed.
  Cover find_cover(const NodeRows& rows, const std::uint32_t* place, std::int64_t n) const {
    const std::uint32_t* end = place + n;
    const std::uint32_t* middle = std::lower_bound(place, end, rows.target.size);
    const Extremes target = bound_guesses(view(rows), transfer_, place, middle - place);
    const Extremes rest = bound_guesses(view(rows), transfer_, middle, end - middle);
    return {std::max(target.min, rest.min), std::min(target.max, rest.max)};
  }

  KnownRows view(const NodeRows& rows) const {
    return {rows.known, length_, rows.target.row};  // the rest follows the targets
  }

  const RowLengths& lengths_;
  PageVector<ShortLength> near_length_;
  const ShortLength* length_ = nullptr;  // by number of a row
  std::vector<double> new_weight_;       // [width]
  Transfer transfer_{};
};

}  // namespace lhtree
