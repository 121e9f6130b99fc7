// Decisions about one node from sums over all of its rows, which other processes hold.
//
// They follow the splitters: which columns take part, the planes that compete, the cut.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "contrast.hpp"
#include "random.hpp"
#include "rules.hpp"
#include "score_kernels.hpp"
#include "statistics.hpp"
#include "threshold.hpp"

namespace lhtree {

/// The columns of a tree, ascending.
inline std::vector<std::int32_t> list_tree_columns(std::uint64_t key, std::int64_t n_columns,
                                                   std::int64_t n_kept) {
  std::vector<std::int32_t> column(n_columns);
  std::iota(column.begin(), column.end(), 0);
  if (n_kept <= 0 || n_kept >= n_columns) return column;
  shuffle_columns(key, column);
  column.resize(n_kept);
  std::sort(column.begin(), column.end());
  return column;
}

/// The first `n` columns in the order in which a node draws them.
inline std::vector<std::int32_t> list_draws(std::uint64_t node_key,
                                            std::vector<std::int32_t> column, std::size_t n) {
  const std::uint64_t key = draw_key(node_key);
  n = std::min(n, column.size());
  for (std::size_t i = 0; i < n; ++i)
    std::swap(column[i], column[i + hash64(key, i) % (column.size() - i)]);
  column.resize(n);
  return column;
}

/// What the sums of a column are good for.
enum class ColumnUse : std::int8_t { none = 0, ready = 1, sum_anew = 2 };

/// A column is of no use where it is constant, or varies too little; it is summed anew
/// about its lower end where it is far from zero for its spread.
inline ColumnUse judge_column(const ColumnMoments& moments, const Extremes& ends, double alpha) {
  const bool is_moved = moments.origin != 0.0;
  const double scale = moments.square / moments.weight();
  if (!is_moved && !(moments.variance() > smallest_ratio * scale)) {
    if (ends.min == ends.max) return ColumnUse::none;
    if (ends.min != 0.0) return ColumnUse::sum_anew;
  }
  return moments.variance() > alpha ? ColumnUse::ready : ColumnUse::none;
}

/// The planes that compete in a node: contrasts over parts of the columns, then columns.
inline std::vector<Terms> make_planes(const std::vector<PlaneColumn>& drawn,
                                      const std::vector<double>& product, const Rules& rules) {
  std::vector<Terms> planes;
  const std::size_t n_drawn = drawn.size();
  std::vector<std::size_t> order;
  std::vector<PlaneColumn> columns;
  for (std::int64_t c = 0; c < rules.n_planes; ++c) {
    const auto [begin, end] = find_part(static_cast<std::size_t>(c), n_drawn);
    if (begin == end) continue;
    order_columns(drawn, begin, end, order, columns);
    const std::vector<double> strength =
        rules.contrast == Contrast::fisher
            ? find_fisher_strength(columns, order, product, n_drawn, drawn[0].moments.weight_target,
                                   drawn[0].moments.weight_rest)
            : find_strength(columns, rules);
    Terms terms;
    if (!strength.empty() && weigh_columns(columns, rules, strength, terms))
      planes.push_back(std::move(terms));
  }
  for (std::size_t k = 0; rules.axes && k < n_drawn; ++k) {
    planes.emplace_back();
    const ColumnMoments& moments = drawn[k].moments;
    planes.back().add(drawn[k].feature, 1.0, moments.mean(), moments.variance());
  }
  return planes;
}

/// Weights and numbers of rows: targets, rest.
struct Count {
  double weight_target = 0.0, weight_rest = 0.0, n_target = 0.0, n_rest = 0.0;

  double weight() const { return weight_target + weight_rest; }
  double size() const { return n_target + n_rest; }
  LeftSide side() const { return {weight_target, weight()}; }
  void add(const Count& other) {
    weight_target += other.weight_target;
    weight_rest += other.weight_rest;
    n_target += other.n_target;
    n_rest += other.n_rest;
  }
};

/// Rows whose projections lie between `ends`; where these differ, cuts may be inside.
struct Segment {
  Count count;
  Extremes ends;
};

/// The segments of a form, ascending: the cuts between them, and bounds for those inside.
struct FormCuts {
  std::vector<double> target{0.0}, all{0.0};  // before each segment, and all
  std::vector<double> behind, inside;         // impurities
  double least = infinity;                    // of the cuts between segments

  FormCuts(const Segment* segment, std::int64_t n, const Count& whole) : behind(n), inside(n) {
    for (std::int64_t s = 0; s < n; ++s) {
      target.push_back(target.back() + segment[s].count.weight_target);
      all.push_back(all.back() + segment[s].count.weight());
    }
    if (n == 0) return;
    find_purity(target.data(), all.data(), n, behind.data(), inside.data());
    for (std::int64_t s = 0; s < n; ++s) {
      const bool may_be_cut = segment[s].ends.min < segment[s].ends.max;
      inside[s] = may_be_cut ? find_impurity(inside[s], whole.side()) : infinity;
      behind[s] = s + 1 < n ? find_impurity({target[s + 1], all[s + 1]}, whole.side()) : infinity;
      least = std::min(least, behind[s]);
    }
  }
};

/// Mark the segments that may hold the best cut of a node. `start` says which segments
/// belong to which form.
inline std::vector<std::uint8_t> find_open(const std::vector<Segment>& segment,
                                           const std::vector<std::int64_t>& start,
                                           const Count& whole, bool compares_forms) {
  const std::size_t n_forms = start.size() - 1;
  std::vector<FormCuts> cuts;
  double least = infinity;
  for (std::size_t f = 0; f < n_forms; ++f) {
    cuts.emplace_back(segment.data() + start[f], start[f + 1] - start[f], whole);
    least = std::min(least, cuts.back().least);
  }
  // Forms win by more than `same_impurity` over the one before: a chain of them adds up.
  const double slack = static_cast<double>(n_forms + 1) * same_impurity;
  std::vector<std::uint8_t> is_open(segment.size());
  for (std::size_t f = 0; f < n_forms; ++f) {
    double limit = cuts[f].least + same_impurity;
    if (compares_forms) limit = std::min(limit, least + slack);
    for (std::int64_t s = start[f]; s < start[f + 1]; ++s)
      is_open[s] = cuts[f].inside[s - start[f]] <= limit;
  }
  return is_open;
}

/// The split that a node gets; form -1: none.
struct ChosenCut {
  std::int64_t form = -1;
  Threshold threshold;
  Count left;
};

/// Let a form's cut compete: the first of equally pure ones wins.
inline void compete(ChosenCut& best, std::int64_t form, Threshold threshold, const Count& left,
                    const Count& whole, double min_weight) {
  const double weight = left.weight(), other = whole.weight() - weight;
  if (weight < min_weight || other < min_weight) return;
  threshold.impurity = find_impurity(left.side(), whole.side());
  if (best.form >= 0 && !(threshold.impurity < best.threshold.impurity - same_impurity)) return;
  best = {form, threshold, left};
}

/// The purest cut between segments, the lowest of equally pure ones.
inline ChosenCut choose_gini_cut(const std::vector<Segment>& segment,
                                 const std::vector<std::int64_t>& start, const Count& whole,
                                 double min_weight) {
  ChosenCut best;
  for (std::size_t f = 0; f + 1 < start.size(); ++f) {
    const Segment* first = segment.data() + start[f];
    const std::int64_t n = start[f + 1] - start[f];
    const FormCuts cuts(first, n, whole);
    Count left;
    for (std::int64_t s = 0; s + 1 < n; ++s) {
      left.add(first[s].count);
      if (cuts.behind[s] > cuts.least + same_impurity) continue;
      const double value = cut_between(first[s].ends.max, first[s + 1].ends.min);
      compete(best, static_cast<std::int64_t>(f), {value, Rule::gini}, left, whole, min_weight);
      break;
    }
  }
  return best;
}

/// Ends of a form's projections.
struct FormEnds {
  Extremes target, rest;
  bool is_flat() const { return std::min(target.min, rest.min) == std::max(target.max, rest.max); }
};

inline constexpr std::int64_t n_pure_cuts = 5;

/// The cuts that the purity rule may choose: those of N1 to N4, and the middle.
inline std::vector<double> list_pure_cuts(const FormEnds& ends) {
  const Outside none{0.0, 0.0};
  return {ends.rest.min, std::nextafter(ends.rest.max, infinity), ends.target.min,
          std::nextafter(ends.target.max, infinity),
          choose_pure(none, none, ends.target, ends.rest, infinity).value};
}

/// The purest of the cuts that the purity rule makes; `left` holds what lies on the left of
/// the cuts that `list_pure_cuts` lists.
inline ChosenCut choose_pure_cut(const std::vector<FormEnds>& ends, const std::vector<Count>& left,
                                 const Count& whole, double gamma, double min_weight) {
  ChosenCut best;
  for (std::size_t f = 0; f < ends.size(); ++f) {
    if (ends[f].is_flat()) continue;
    const Count* of = left.data() + f * n_pure_cuts;
    const Outside targets{of[0].weight_target, whole.weight_target - of[1].weight_target};
    const Outside others{of[2].weight_rest, whole.weight_rest - of[3].weight_rest};
    const Threshold cut = choose_pure(targets, others, ends[f].target, ends[f].rest, gamma);
    const auto number = static_cast<std::int64_t>(cut.rule) - 1;
    compete(best, static_cast<std::int64_t>(f), cut, of[number], whole, min_weight);
  }
  return best;
}

}  // namespace lhtree
