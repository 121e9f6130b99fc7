// The draws and decisions between the passes, as Python sees them; see old/decide.hpp.
#include <cstdint>
#include <utility>
#include <vector>

#include "old/decide.hpp"
#include "read_rules.hpp"
#include "threads.hpp"

namespace lhtree {
namespace {
namespace python {  // apart from the functions of the same names that they call

// ---- draws -------------------------------------------------------------------

std::pair<std::uint64_t, std::uint32_t> compute_draw_limit(std::uint64_t seed,
                                                           std::uint64_t estimator,
                                                           std::uint32_t n_rows,
                                                           std::uint32_t n_draws) {
  demand(0 < n_draws && n_draws < n_rows, "n_draws must lie between 0 and n_rows");
  const DrawLimit limit = run_pass([&] {
    return find_draw_limit(member_key(seed, estimator), n_rows, n_draws, StopFlag{false});
  });
  return {limit.hash, limit.row};
}

/// How often each of the rows first ... first + n - 1 is drawn.
Output<std::uint32_t, 1> draw_partition(std::uint64_t seed, std::uint64_t estimator,
                                        std::uint32_t first, std::uint32_t n, std::uint32_t n_rows,
                                        std::uint32_t n_draws, bool bootstrap,
                                        std::uint64_t limit_hash, std::uint32_t limit_row) {
  std::vector<std::uint32_t> count = run_pass([&] {
    const std::uint64_t key = member_key(seed, estimator);
    std::vector<std::uint32_t> count(n, bootstrap || n_draws < n_rows ? 0 : 1);
    if (bootstrap) {
      for (std::uint32_t j = 0; j < n_draws; ++j) {
        const std::uint64_t row = hash64(key, j) % n_rows - first;  // wraps before the first
        if (row < n) ++count[row];
      }
    } else if (n_draws < n_rows) {
      const DrawLimit limit{limit_hash, limit_row};
      for (std::uint32_t i = 0; i < n; ++i)
        count[i] = limit.includes(hash64(key, first + i), first + i);
    }
    return count;
  });
  return to_numpy(std::move(count));
}

std::uint64_t make_tree_key(std::uint64_t seed, std::uint64_t estimator,
                            std::uint64_t positive_class) {
  return tree_key(member_key(seed, estimator), positive_class);
}

// ---- decisions ---------------------------------------------------------------

nb::tuple to_tuple(const Terms& terms) {
  return nb::make_tuple(to_numpy(std::vector(terms.feature)), to_numpy(std::vector(terms.weight)),
                        to_numpy(std::vector(terms.center)),
                        to_numpy(std::vector(terms.deviation)));
}

std::vector<PlaneColumn> read_columns(const Ints& column, const Doubles& origin, const Doubles& sum,
                                      double positive_weight, double negative_weight) {
  demand(origin.size() == column.size() && sum.size() >= 3 * column.size(),
         "the sums do not fit the columns");
  std::vector<PlaneColumn> columns;
  for (std::size_t i = 0; i < column.size(); ++i)
    columns.push_back({column(i), ColumnMoments{positive_weight, negative_weight, origin(i),
                                                sum(3 * i), sum(3 * i + 1), sum(3 * i + 2)}});
  return columns;
}

Output<std::int32_t, 1> list_tree_columns(std::uint64_t key, std::int64_t n_columns,
                                          std::int64_t n_kept) {
  return to_numpy(lhtree::list_tree_columns(key, n_columns, n_kept));
}

Output<std::int32_t, 1> draw_columns(std::uint64_t key, const Ints& column, std::size_t n) {
  return to_numpy(list_draws(key, {column.data(), column.data() + column.size()}, n));
}

Output<std::int8_t, 1> classify_columns(const Ints& column, const Doubles& origin,
                                        const Doubles& sum, const Doubles& end,
                                        double positive_weight, double negative_weight,
                                        double alpha) {
  demand(end.size() == 2 * column.size(), "the ends do not fit the columns");
  std::vector<std::int8_t> use;
  const auto columns = read_columns(column, origin, sum, positive_weight, negative_weight);
  for (std::size_t i = 0; i < columns.size(); ++i)
    use.push_back(static_cast<std::int8_t>(
        judge_column(columns[i].moments, Extremes{-end(2 * i), end(2 * i + 1)}, alpha)));
  return to_numpy(std::move(use));
}

nb::list make_hyperplanes(nb::handle plan, double beta, const Ints& column, const Doubles& origin,
                          const Doubles& sum, double positive_weight, double negative_weight) {
  Rules rules = read_rules(plan);
  rules.beta = beta;
  const auto drawn = read_columns(column, origin, sum, positive_weight, negative_weight);
  const std::size_t p = drawn.size();
  std::vector<double> product;
  if (rules.contrast == Contrast::fisher && rules.n_planes > 0) {
    demand(sum.size() == 3 * p + (p > 0 ? p * (p - 1) / 2 : 0), "products are missing");
    product.resize(p * p);
    const double* next = sum.data() + 3 * p;
    for (std::size_t i = 0; i < p; ++i) {
      for (std::size_t j = 0; j < i; ++j) product[i * p + j] = *next++;
      product[i * p + i] = drawn[i].moments.square;
    }
  }
  nb::list result;
  for (const Terms& terms : make_planes(drawn, product, rules)) result.append(to_tuple(terms));
  return result;
}

nb::tuple make_leaf(const Ints& column, const Doubles& origin, const Doubles& sum,
                    double positive_weight, double negative_weight) {
  Terms terms;
  for (const PlaneColumn& part :
       read_columns(column, origin, sum, positive_weight, negative_weight))
    add_slope(terms, part.feature, part.moments);
  return to_tuple(terms);
}

double compute_norm(const Ints& feature, const Doubles& weight) {
  demand(feature.size() == weight.size(), "feature and weight differ in length");
  Terms terms;
  for (std::size_t k = 0; k < feature.size(); ++k) terms.add(feature(k), weight(k), 0.0, 0.0);
  return find_norm(terms);
}

Count read_count(const double* value) { return {value[0], value[1], value[2], value[3]}; }

std::vector<Segment> read_segments(const Input<double, 2>& count, const Input<double, 2>& end,
                                   const Longs& start) {
  demand(count.shape(1) == 4 && end.shape(1) == 2 && end.shape(0) == count.shape(0) &&
             start.size() > 0,
         "the segments do not fit together");
  check_starts(start, start.size() - 1, count.shape(0), "the segments do not fit together");
  std::vector<Segment> segment;
  for (std::size_t s = 0; s < count.shape(0); ++s)
    segment.push_back({read_count(count.data() + 4 * s), Extremes{end(s, 0), end(s, 1)}});
  return segment;
}

std::vector<std::int64_t> to_vector(const Longs& values) {
  return {values.data(), values.data() + values.size()};
}

nb::object to_object(const ChosenCut& cut) {
  if (cut.form < 0) return nb::none();
  const std::vector<double> left{cut.left.weight_target, cut.left.weight_rest, cut.left.n_target,
                                 cut.left.n_rest};
  return nb::make_tuple(cut.form, cut.threshold.value, static_cast<int>(cut.threshold.rule),
                        to_numpy(std::vector(left)));
}

Output<std::uint8_t, 1> list_open_bins(const Input<double, 2>& count, const Input<double, 2>& end,
                                       const Longs& start, const Doubles& whole,
                                       bool compares_forms) {
  demand(whole.size() == 4, "whole must have four entries");
  return to_numpy(find_open(read_segments(count, end, start), to_vector(start),
                            read_count(whole.data()), compares_forms));
}

nb::object choose_gini_cut(const Input<double, 2>& count, const Input<double, 2>& end,
                           const Longs& start, const Doubles& whole, double min_weight) {
  demand(whole.size() == 4, "whole must have four entries");
  return to_object(lhtree::choose_gini_cut(read_segments(count, end, start), to_vector(start),
                                           read_count(whole.data()), min_weight));
}

/// Ends as merged: lower ones negated; targets, then rest.
FormEnds read_ends(const Input<double, 2>& end, std::size_t f) {
  return {{-end(f, 0), end(f, 1)}, {-end(f, 2), end(f, 3)}};
}

Output<double, 1> list_pure_cuts(const Input<double, 2>& end) {
  demand(end.shape(1) == 4, "end must have four columns");
  const StandardArithmetic standard;
  std::vector<double> cuts;
  for (std::size_t f = 0; f < end.shape(0); ++f)
    for (const double value : lhtree::list_pure_cuts(read_ends(end, f))) cuts.push_back(value);
  return to_numpy(std::move(cuts));
}

nb::object choose_pure_cut(const Input<double, 2>& end, const Input<double, 2>& left,
                           const Doubles& whole, double gamma, double min_weight) {
  demand(whole.size() == 4 && end.shape(1) == 4 && left.shape(1) == 4 &&
             left.shape(0) == end.shape(0) * n_pure_cuts,
         "the counts do not fit together");
  const StandardArithmetic standard;
  std::vector<FormEnds> ends;
  std::vector<Count> counts;
  for (std::size_t f = 0; f < end.shape(0); ++f) ends.push_back(read_ends(end, f));
  for (std::size_t i = 0; i < left.shape(0); ++i) counts.push_back(read_count(left.data() + 4 * i));
  return to_object(
      lhtree::choose_pure_cut(ends, counts, read_count(whole.data()), gamma, min_weight));
}

}  // namespace python
}  // namespace

void bind_decisions(nb::module_& m) {
  m.def("compute_draw_limit", &python::compute_draw_limit, "seed"_a, "estimator"_a, "n_rows"_a,
        "n_draws"_a);
  m.def("draw_partition", &python::draw_partition, "seed"_a, "estimator"_a, "first"_a, "n"_a,
        "n_rows"_a, "n_draws"_a, "bootstrap"_a, "limit_hash"_a, "limit_row"_a);
  m.def("make_tree_key", &python::make_tree_key, "seed"_a, "estimator"_a, "positive_class"_a);
  m.def("make_child_key", &child_key, "key"_a, "is_right"_a);
  m.def("list_tree_columns", &python::list_tree_columns, "key"_a, "n_columns"_a, "n_kept"_a);
  m.def("draw_columns", &python::draw_columns, "key"_a, "column"_a.noconvert(), "n"_a);
  m.def("classify_columns", &python::classify_columns, "column"_a.noconvert(),
        "origin"_a.noconvert(), "sum"_a.noconvert(), "end"_a.noconvert(), "positive_weight"_a,
        "negative_weight"_a, "alpha"_a);
  m.def("make_hyperplanes", &python::make_hyperplanes, "plan"_a, "beta"_a, "column"_a.noconvert(),
        "origin"_a.noconvert(), "sum"_a.noconvert(), "positive_weight"_a, "negative_weight"_a);
  m.def("make_leaf", &python::make_leaf, "column"_a.noconvert(), "origin"_a.noconvert(),
        "sum"_a.noconvert(), "positive_weight"_a, "negative_weight"_a);
  m.def("compute_norm", &python::compute_norm, "feature"_a.noconvert(), "weight"_a.noconvert());
  m.def("list_open_bins", &python::list_open_bins, "count"_a.noconvert(), "end"_a.noconvert(),
        "start"_a.noconvert(), "whole"_a.noconvert(), "compares_hyperplanes"_a);
  m.def("choose_gini_cut", &python::choose_gini_cut, "count"_a.noconvert(), "end"_a.noconvert(),
        "start"_a.noconvert(), "whole"_a.noconvert(), "min_weight"_a);
  m.def("list_pure_cuts", &python::list_pure_cuts, "end"_a.noconvert());
  m.def("choose_pure_cut", &python::choose_pure_cut, "end"_a.noconvert(), "left"_a.noconvert(),
        "whole"_a.noconvert(), "gamma"_a, "min_weight"_a);
}

}  // namespace lhtree
