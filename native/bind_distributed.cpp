// The passes over parts of the rows, and the decisions between them, as Python sees them.
#include <cstdint>
#include <stdexcept>
#include <string>

#include "decide.hpp"
#include "numpy.hpp"
#include "part.hpp"

namespace lhtree {
namespace {

template <class T>
using AnyOrder = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
using Rows = Input<std::uint32_t, 1>;
using Longs = Input<std::int64_t, 1>;
using Ints = Input<std::int32_t, 1>;
using Bytes = Input<std::uint8_t, 1>;
using Doubles = Input<double, 1>;
using TwoArrays = std::pair<Output<double, 1>, Output<double, 1>>;

void demand(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

template <class T>
PartTable<T> read_table(const AnyOrder<T>& X, const Doubles& mean, const Doubles& deviation) {
  demand(mean.size() == X.shape(1) && deviation.size() == X.shape(1),
         "mean and deviation must have one entry per column");
  return {X.data(),
          X.stride(0),
          X.stride(1),
          static_cast<std::int64_t>(X.shape(0)),
          static_cast<std::int64_t>(X.shape(1)),
          mean.data(),
          deviation.data()};
}

void check_starts(const Longs& start, std::size_t n, std::size_t n_entries, const char* what) {
  demand(start.size() == n + 1 && start(0) == 0 && start(n) == static_cast<std::int64_t>(n_entries),
         what);
  for (std::size_t i = 0; i < n; ++i) demand(start(i) <= start(i + 1), what);
}

PartNodes read_nodes(const Rows& row, const OptionalWeight& weight, const Longs& start,
                     const Longs& middle, std::size_t n_rows) {
  const char* what = "the rows of the nodes do not fit together";
  check_starts(start, middle.size(), row.size(), what);
  demand(!weight || weight->size() == row.size(), what);
  for (std::size_t k = 0; k < middle.size(); ++k)
    demand(start(k) <= middle(k) && middle(k) <= start(k + 1), what);
  for (std::size_t i = 0; i < row.size(); ++i) demand(row(i) < n_rows, what);
  return {row.data(), weight ? weight->data() : nullptr, start.data(), middle.data(),
          static_cast<std::int64_t>(middle.size())};
}

Forms read_forms(const Longs& node, const Longs& start, const Ints& feature, const Doubles& weight,
                 std::size_t n_nodes, std::size_t n_columns) {
  const char* what = "the forms do not fit together";
  check_starts(start, node.size(), feature.size(), what);
  demand(weight.size() == feature.size(), what);
  for (std::size_t f = 0; f < node.size(); ++f)
    demand(0 <= node(f) && node(f) < static_cast<std::int64_t>(n_nodes) &&
               (f == 0 || node(f - 1) <= node(f)),
           what);
  for (std::size_t t = 0; t < feature.size(); ++t)
    demand(0 <= feature(t) && feature(t) < static_cast<std::int64_t>(n_columns), what);
  return {static_cast<std::int64_t>(node.size()), node.data(), start.data(), feature.data(),
          weight.data()};
}

TwoArrays to_arrays(PartSums sums) {
  return {to_numpy(std::move(sums.sum)), to_numpy(std::move(sums.end))};
}

/// Run a pass without the interpreter's lock.
template <class Pass>
auto run_pass(const Pass& pass) {
  nb::gil_scoped_release unlocked;
  const StandardArithmetic standard;
  return pass();
}

template <class T>
TwoArrays measure(const AnyOrder<T>& X, const Doubles& mean, const Doubles& deviation,
                  const Rows& row, const OptionalWeight& weight, const Longs& start,
                  const Longs& middle, const Longs& column_start, const Ints& column,
                  const Doubles& origin, bool with_products) {
  const PartTable<T> table = read_table(X, mean, deviation);
  const PartNodes nodes = read_nodes(row, weight, start, middle, X.shape(0));
  check_starts(column_start, middle.size(), column.size(), "the columns asked for do not fit");
  demand(origin.size() == column.size(), "origin must have one entry per column asked for");
  for (std::size_t i = 0; i < column.size(); ++i)
    demand(0 <= column(i) && column(i) < table.n_columns, "a column asked for is out of range");
  const ColumnRequest request{column_start.data(), column.data(), origin.data(), with_products};
  return to_arrays(run_pass([&] { return measure_nodes(table, nodes, request); }));
}

Segments read_ranges(const Longs& start, const Doubles& low, const Doubles& high,
                     const Longs& bin_start, bool is_whole, std::size_t n_forms) {
  const char* what = "the segments do not fit together";
  check_starts(start, n_forms, low.size(), what);
  demand(high.size() == low.size() && bin_start.size() == low.size() + 1 && bin_start(0) == 0,
         what);
  for (std::size_t s = 0; s < low.size(); ++s) demand(bin_start(s) < bin_start(s + 1), what);
  demand(!is_whole || low.size() == n_forms, what);
  for (std::size_t f = 0; is_whole && f < n_forms; ++f) demand(start(f) < start(f + 1), what);
  return {start.data(), low.data(), high.data(), bin_start.data(), is_whole};
}

template <class T>
TwoArrays bins(const AnyOrder<T>& X, const Doubles& mean, const Doubles& deviation, const Rows& row,
               const OptionalWeight& weight, const Longs& start, const Longs& middle,
               const Longs& form_node, const Longs& form_start, const Ints& feature,
               const Doubles& form_weight, const Longs& segment_start, const Doubles& low,
               const Doubles& high, const Longs& bin_start, bool is_whole) {
  const PartTable<T> table = read_table(X, mean, deviation);
  const PartNodes nodes = read_nodes(row, weight, start, middle, X.shape(0));
  const Forms forms =
      read_forms(form_node, form_start, feature, form_weight, middle.size(), X.shape(1));
  const Segments segments =
      read_ranges(segment_start, low, high, bin_start, is_whole, form_node.size());
  return to_arrays(run_pass([&] { return count_bins(table, nodes, forms, segments); }));
}

template <class T>
nb::tuple scores(const AnyOrder<T>& X, const Doubles& mean, const Doubles& deviation,
                 const Rows& row, const OptionalWeight& weight, const Longs& start,
                 const Longs& middle, const Longs& form_node, const Longs& form_start,
                 const Ints& feature, const Doubles& form_weight, const Longs& segment_start,
                 const Doubles& low, const Doubles& high, const Longs& bin_start, bool is_whole) {
  const PartTable<T> table = read_table(X, mean, deviation);
  const PartNodes nodes = read_nodes(row, weight, start, middle, X.shape(0));
  const Forms forms =
      read_forms(form_node, form_start, feature, form_weight, middle.size(), X.shape(1));
  const Segments segments =
      read_ranges(segment_start, low, high, bin_start, is_whole, form_node.size());
  ListedScores listed = run_pass([&] { return list_scores(table, nodes, forms, segments); });
  return nb::make_tuple(to_numpy(std::move(listed.form)), to_numpy(std::move(listed.score)),
                        to_numpy(std::move(listed.is_target)), to_numpy(std::move(listed.weight)));
}

template <class T>
TwoArrays below(const AnyOrder<T>& X, const Doubles& mean, const Doubles& deviation,
                const Rows& row, const OptionalWeight& weight, const Longs& start,
                const Longs& middle, const Longs& form_node, const Longs& form_start,
                const Ints& feature, const Doubles& form_weight, const Doubles& threshold) {
  const PartTable<T> table = read_table(X, mean, deviation);
  const PartNodes nodes = read_nodes(row, weight, start, middle, X.shape(0));
  const Forms forms =
      read_forms(form_node, form_start, feature, form_weight, middle.size(), X.shape(1));
  demand(threshold.size() == form_node.size() * n_pure_cuts, "five thresholds per form are needed");
  return to_arrays(
      run_pass([&] { return sum_below(table, nodes, forms, threshold.data(), n_pure_cuts); }));
}

template <class T>
nb::tuple split(const AnyOrder<T>& X, const Doubles& mean, const Doubles& deviation,
                const Rows& row, const OptionalWeight& weight, const Longs& start,
                const Longs& middle, const Longs& form_node, const Longs& form_start,
                const Ints& feature, const Doubles& form_weight, const Doubles& threshold,
                const Bytes& stays, const Bytes& keeps) {
  const PartTable<T> table = read_table(X, mean, deviation);
  const PartNodes nodes = read_nodes(row, weight, start, middle, X.shape(0));
  const Forms forms =
      read_forms(form_node, form_start, feature, form_weight, middle.size(), X.shape(1));
  demand(stays.size() == middle.size() && keeps.size() == 2 * middle.size() &&
             threshold.size() == form_node.size(),
         "the fates do not fit the nodes");
  std::vector<std::int64_t> form(middle.size(), -1);
  for (std::size_t f = 0; f < form_node.size(); ++f)
    form[form_node(f)] = static_cast<std::int64_t>(f);
  const Fates fates{stays.data(), form.data(), keeps.data(), threshold.data()};
  SplitRows next = run_pass([&] { return PartSplitter<T>(table, nodes, forms, fates).run(); });
  nb::object next_weight = nb::none();
  if (weight) next_weight = nb::cast(to_numpy(std::move(next.weight)));
  return nb::make_tuple(to_numpy(std::move(next.row)), next_weight, to_numpy(std::move(next.start)),
                        to_numpy(std::move(next.middle)));
}

template <class T>
Output<double, 2> columns(const AnyOrder<T>& X, const Doubles& origin, const Doubles& unit,
                          const Rows& row, const OptionalWeight& weight) {
  const PartTable<T> table = read_table(X, origin, unit);
  demand(!weight || weight->size() == row.size(), "weight must have one entry per row");
  for (std::size_t i = 0; i < row.size(); ++i) demand(row(i) < X.shape(0), "a row is out of range");
  PartSums sums = run_pass([&] {
    return sum_columns(table, row.data(), weight ? weight->data() : nullptr,
                       static_cast<std::int64_t>(row.size()));
  });
  return to_numpy<double, 2>(std::move(sums.sum), {X.shape(1), 2});
}

// ---- draws -------------------------------------------------------------------

std::pair<std::uint64_t, std::uint32_t> draw_limit(std::uint64_t seed, std::uint64_t member,
                                                   std::uint32_t n_rows, std::uint32_t n_draws) {
  demand(0 < n_draws && n_draws < n_rows, "n_draws must lie between 0 and n_rows");
  const DrawLimit limit = run_pass(
      [&] { return find_draw_limit(member_key(seed, member), n_rows, n_draws, StopFlag{false}); });
  return {limit.hash, limit.row};
}

/// How often each of the rows first ... first + n - 1 is drawn.
Output<std::uint32_t, 1> draw_part(std::uint64_t seed, std::uint64_t member, std::uint32_t first,
                                   std::uint32_t n, std::uint32_t n_rows, std::uint32_t n_draws,
                                   bool bootstrap, std::uint64_t limit_hash,
                                   std::uint32_t limit_row) {
  std::vector<std::uint32_t> count = run_pass([&] {
    const std::uint64_t key = member_key(seed, member);
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

std::uint64_t find_tree_key(std::uint64_t seed, std::uint64_t member, std::uint64_t target) {
  return tree_key(member_key(seed, member), target);
}

// ---- decisions ---------------------------------------------------------------

nb::tuple to_tuple(const Terms& terms) {
  return nb::make_tuple(to_numpy(std::vector(terms.feature)), to_numpy(std::vector(terms.weight)),
                        to_numpy(std::vector(terms.center)),
                        to_numpy(std::vector(terms.deviation)));
}

std::vector<PlaneColumn> read_columns(const Ints& column, const Doubles& origin, const Doubles& sum,
                                      double weight_target, double weight_rest) {
  demand(origin.size() == column.size() && sum.size() >= 3 * column.size(),
         "the sums do not fit the columns");
  std::vector<PlaneColumn> columns;
  for (std::size_t i = 0; i < column.size(); ++i)
    columns.push_back({column(i), ColumnMoments{weight_target, weight_rest, origin(i), sum(3 * i),
                                                sum(3 * i + 1), sum(3 * i + 2)}});
  return columns;
}

Output<std::int32_t, 1> tree_columns(std::uint64_t key, std::int64_t n_columns,
                                     std::int64_t n_kept) {
  return to_numpy(list_tree_columns(key, n_columns, n_kept));
}

Output<std::int32_t, 1> draw_columns(std::uint64_t key, const Ints& column, std::size_t n) {
  return to_numpy(list_draws(key, {column.data(), column.data() + column.size()}, n));
}

Output<std::int8_t, 1> judge_columns(const Ints& column, const Doubles& origin, const Doubles& sum,
                                     const Doubles& end, double weight_target, double weight_rest,
                                     double alpha) {
  demand(end.size() == 2 * column.size(), "the ends do not fit the columns");
  std::vector<std::int8_t> use;
  const auto columns = read_columns(column, origin, sum, weight_target, weight_rest);
  for (std::size_t i = 0; i < columns.size(); ++i)
    use.push_back(static_cast<std::int8_t>(
        judge_column(columns[i].moments, Extremes{-end(2 * i), end(2 * i + 1)}, alpha)));
  return to_numpy(std::move(use));
}

nb::list planes(nb::handle plan, double beta, const Ints& column, const Doubles& origin,
                const Doubles& sum, double weight_target, double weight_rest) {
  Rules rules = read_plan(plan).rules;
  rules.beta = beta;
  const auto drawn = read_columns(column, origin, sum, weight_target, weight_rest);
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

nb::tuple leaf(const Ints& column, const Doubles& origin, const Doubles& sum, double weight_target,
               double weight_rest) {
  Terms terms;
  for (const PlaneColumn& part : read_columns(column, origin, sum, weight_target, weight_rest))
    add_slope(terms, part.feature, part.moments);
  return to_tuple(terms);
}

double norm(const Ints& feature, const Doubles& weight) {
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

Output<std::uint8_t, 1> open_segments(const Input<double, 2>& count, const Input<double, 2>& end,
                                      const Longs& start, const Doubles& whole,
                                      bool compares_forms) {
  demand(whole.size() == 4, "whole must have four entries");
  return to_numpy(find_open(read_segments(count, end, start), to_vector(start),
                            read_count(whole.data()), compares_forms));
}

nb::object gini_cut(const Input<double, 2>& count, const Input<double, 2>& end, const Longs& start,
                    const Doubles& whole, double min_weight) {
  demand(whole.size() == 4, "whole must have four entries");
  return to_object(choose_gini_cut(read_segments(count, end, start), to_vector(start),
                                   read_count(whole.data()), min_weight));
}

/// Ends as merged: lower ones negated; targets, then rest.
FormEnds read_ends(const Input<double, 2>& end, std::size_t f) {
  return {{-end(f, 0), end(f, 1)}, {-end(f, 2), end(f, 3)}};
}

Output<double, 1> pure_cuts(const Input<double, 2>& end) {
  demand(end.shape(1) == 4, "end must have four columns");
  const StandardArithmetic standard;
  std::vector<double> cuts;
  for (std::size_t f = 0; f < end.shape(0); ++f)
    for (const double value : list_pure_cuts(read_ends(end, f))) cuts.push_back(value);
  return to_numpy(std::move(cuts));
}

nb::object pure_cut(const Input<double, 2>& end, const Input<double, 2>& left, const Doubles& whole,
                    double gamma, double min_weight) {
  demand(whole.size() == 4 && end.shape(1) == 4 && left.shape(1) == 4 &&
             left.shape(0) == end.shape(0) * n_pure_cuts,
         "the counts do not fit together");
  const StandardArithmetic standard;
  std::vector<FormEnds> ends;
  std::vector<Count> counts;
  for (std::size_t f = 0; f < end.shape(0); ++f) ends.push_back(read_ends(end, f));
  for (std::size_t i = 0; i < left.shape(0); ++i) counts.push_back(read_count(left.data() + 4 * i));
  return to_object(choose_pure_cut(ends, counts, read_count(whole.data()), gamma, min_weight));
}

// ---- subtrees ----------------------------------------------------------------

template <class T>
nb::dict branches(const Input<T, 2>& Z, nb::handle plan_object, const Rows& row,
                  const OptionalWeight& weight, const Longs& start, const Longs& middle,
                  const Input<std::uint64_t, 1>& key, const Input<std::uint64_t, 1>& tree_key,
                  const Longs& depth, const Doubles& weight_sum, const Doubles& beta,
                  std::int64_t n_threads, nb::object watch) {
  const Plan plan = read_plan(plan_object);
  const bool by_columns = nb::cast<bool>(plan_object.attr("by_columns"));
  const auto n_rows = static_cast<std::int64_t>(Z.shape(by_columns ? 1 : 0));
  const auto n_columns = static_cast<std::int64_t>(Z.shape(by_columns ? 0 : 1));
  demand(n_rows > 0 && n_columns > 0, "the table must not be empty");
  demand(by_columns != plan.rules.is_dense(n_columns),
         "by_columns does not fit the other fields of the plan");
  read_nodes(row, weight, start, middle, n_rows);
  const std::size_t n = middle.size();
  demand(key.size() == n && tree_key.size() == n && depth.size() == n && weight_sum.size() == n &&
             beta.size() == n,
         "the branches do not fit together");
  std::vector<Branch> list;
  for (std::size_t k = 0; k < n; ++k) {
    demand(start(k) < start(k + 1), "a branch must have rows");
    list.push_back({Start{key(k), tree_key(k), depth(k), weight_sum(k)}, beta(k), start(k),
                    middle(k), start(k + 1)});
  }
  // What `watch` raises stops the work: a cluster may not want it any more.
  const Poll poll = [watch](std::int64_t) {
    nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!watch.is_none()) watch();
  };
  const double* weights = weight ? weight->data() : nullptr;
  Forest forest;
  {
    nb::gil_scoped_release unlocked;
    if (by_columns)
      forest = grow_branches(ColumnTable<T>(Z.data(), n_rows, n_columns, false), row.data(),
                             weights, list, plan.rules, n_threads, poll);
    else
      forest = grow_branches(make_row_table(Z.data(), n_rows, n_columns, false, plan.rules),
                             row.data(), weights, list, plan.rules, n_threads, poll);
  }
  return to_dict(std::move(forest));
}

template <class T>
void bind_part(nb::module_& m) {
  m.def("measure_nodes", &measure<T>, "X"_a.noconvert(), "mean"_a.noconvert(),
        "deviation"_a.noconvert(), "row"_a.noconvert(), "weight"_a.noconvert().none(),
        "start"_a.noconvert(), "middle"_a.noconvert(), "column_start"_a.noconvert(),
        "column"_a.noconvert(), "origin"_a.noconvert(), "with_products"_a);
  m.def("count_bins", &bins<T>, "X"_a.noconvert(), "mean"_a.noconvert(), "deviation"_a.noconvert(),
        "row"_a.noconvert(), "weight"_a.noconvert().none(), "start"_a.noconvert(),
        "middle"_a.noconvert(), "form_node"_a.noconvert(), "form_start"_a.noconvert(),
        "feature"_a.noconvert(), "form_weight"_a.noconvert(), "segment_start"_a.noconvert(),
        "low"_a.noconvert(), "high"_a.noconvert(), "bin_start"_a.noconvert(), "is_whole"_a);
  m.def("list_scores", &scores<T>, "X"_a.noconvert(), "mean"_a.noconvert(),
        "deviation"_a.noconvert(), "row"_a.noconvert(), "weight"_a.noconvert().none(),
        "start"_a.noconvert(), "middle"_a.noconvert(), "form_node"_a.noconvert(),
        "form_start"_a.noconvert(), "feature"_a.noconvert(), "form_weight"_a.noconvert(),
        "segment_start"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(),
        "bin_start"_a.noconvert(), "is_whole"_a);
  m.def("sum_below", &below<T>, "X"_a.noconvert(), "mean"_a.noconvert(), "deviation"_a.noconvert(),
        "row"_a.noconvert(), "weight"_a.noconvert().none(), "start"_a.noconvert(),
        "middle"_a.noconvert(), "form_node"_a.noconvert(), "form_start"_a.noconvert(),
        "feature"_a.noconvert(), "form_weight"_a.noconvert(), "threshold"_a.noconvert());
  m.def("split_nodes", &split<T>, "X"_a.noconvert(), "mean"_a.noconvert(),
        "deviation"_a.noconvert(), "row"_a.noconvert(), "weight"_a.noconvert().none(),
        "start"_a.noconvert(), "middle"_a.noconvert(), "form_node"_a.noconvert(),
        "form_start"_a.noconvert(), "feature"_a.noconvert(), "form_weight"_a.noconvert(),
        "threshold"_a.noconvert(), "stays"_a.noconvert(), "keeps"_a.noconvert());
  m.def("sum_columns", &columns<T>, "X"_a.noconvert(), "origin"_a.noconvert(), "unit"_a.noconvert(),
        "row"_a.noconvert(), "weight"_a.noconvert().none());
  m.def("grow_branches", &branches<T>, "Z"_a.noconvert(), "plan"_a, "row"_a.noconvert(),
        "weight"_a.noconvert().none(), "start"_a.noconvert(), "middle"_a.noconvert(),
        "key"_a.noconvert(), "tree_key"_a.noconvert(), "depth"_a.noconvert(),
        "weight_sum"_a.noconvert(), "beta"_a.noconvert(), "n_threads"_a, "watch"_a.none());
}

}  // namespace

void bind_distributed(nb::module_& m) {
  bind_part<double>(m);
  bind_part<float>(m);
  m.def("find_draw_limit", &draw_limit, "seed"_a, "member"_a, "n_rows"_a, "n_draws"_a);
  m.def("draw_part", &draw_part, "seed"_a, "member"_a, "first"_a, "n"_a, "n_rows"_a, "n_draws"_a,
        "bootstrap"_a, "limit_hash"_a, "limit_row"_a);
  m.def("find_tree_key", &find_tree_key, "seed"_a, "member"_a, "target"_a);
  m.def("find_child_key", &child_key, "key"_a, "is_right"_a);
  m.def("list_tree_columns", &tree_columns, "key"_a, "n_columns"_a, "n_kept"_a);
  m.def("draw_columns", &draw_columns, "key"_a, "column"_a.noconvert(), "n"_a);
  m.def("judge_columns", &judge_columns, "column"_a.noconvert(), "origin"_a.noconvert(),
        "sum"_a.noconvert(), "end"_a.noconvert(), "weight_target"_a, "weight_rest"_a, "alpha"_a);
  m.def("make_planes", &planes, "plan"_a, "beta"_a, "column"_a.noconvert(), "origin"_a.noconvert(),
        "sum"_a.noconvert(), "weight_target"_a, "weight_rest"_a);
  m.def("make_leaf", &leaf, "column"_a.noconvert(), "origin"_a.noconvert(), "sum"_a.noconvert(),
        "weight_target"_a, "weight_rest"_a);
  m.def("find_norm", &norm, "feature"_a.noconvert(), "weight"_a.noconvert());
  m.def("find_open", &open_segments, "count"_a.noconvert(), "end"_a.noconvert(),
        "start"_a.noconvert(), "whole"_a.noconvert(), "compares_forms"_a);
  m.def("choose_gini_cut", &gini_cut, "count"_a.noconvert(), "end"_a.noconvert(),
        "start"_a.noconvert(), "whole"_a.noconvert(), "min_weight"_a);
  m.def("list_pure_cuts", &pure_cuts, "end"_a.noconvert());
  m.def("choose_pure_cut", &pure_cut, "end"_a.noconvert(), "left"_a.noconvert(),
        "whole"_a.noconvert(), "gamma"_a, "min_weight"_a);
}

}  // namespace lhtree
