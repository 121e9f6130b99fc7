// Growing trees, and what follows from their draws and their costs.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "old/forest.hpp"
#include "old/pages.hpp"
#include "old/scale.hpp"
#include "read_rules.hpp"
#include "read_state.hpp"
#include "threads.hpp"

namespace lhtree {
namespace {

Plan read_plan(nb::handle object) {
  Plan plan;
  read_field(object, "seed", plan.seed);
  read_field(object, "first_estimator", plan.first_member);
  read_field(object, "beta", plan.beta);
  read_field(object, "positive_class", plan.target);
  read_field(object, "n_draws", plan.n_draws);
  read_field(object, "bootstrap", plan.bootstrap);
  read_field(object, "balance", plan.balance);
  read_field(object, "n_classes", plan.n_classes);
  plan.rules = read_rules(object);
  return plan;
}

/// The arrays of a grown forest by name.
nb::dict to_dict(Forest forest) {
  nb::dict result;
  const std::size_t n_splits = forest.threshold.size();
  result["tree_start"] = to_numpy(std::move(forest.tree_start));
  result["positive_class"] = to_numpy(std::move(forest.target));
  result["n_terms"] = to_numpy(std::move(forest.n_terms));
  if (forest.short_feature.empty())
    result["feature"] = to_numpy(std::move(forest.feature));
  else
    result["feature"] = to_numpy(std::move(forest.short_feature));
  result["weight"] = to_numpy(std::move(forest.weight));
  result["center"] = to_numpy(std::move(forest.center));
  result["std"] = to_numpy(std::move(forest.deviation));
  result["threshold"] = to_numpy(std::move(forest.threshold));
  result["norm"] = to_numpy(std::move(forest.norm));
  result["value"] = to_numpy(std::move(forest.share));
  result["n_samples"] = to_numpy(std::move(forest.n_samples));
  if (!forest.weight_sum.empty()) result["weight_sum"] = to_numpy(std::move(forest.weight_sum));
  result["threshold_kind"] = to_numpy(std::move(forest.rule));
  result["extremes"] = to_numpy<double, 2>(std::move(forest.extremes), {n_splits, 4});
  return result;
}

Labels check_labels(const Input<std::int32_t, 1>& y_encoded, const OptionalWeight& weight,
                    std::size_t n_rows, const Plan& plan) {
  check_length(y_encoded.size(), n_rows, "y_encoded");
  if (weight) check_length(weight->size(), n_rows, "weight");
  for (std::size_t i = 0; i < y_encoded.size(); ++i)
    demand(0 <= y_encoded(i) && y_encoded(i) < plan.n_classes, "y_encoded has an unknown class");
  return {y_encoded.data(), weight_of(weight)};
}

/// A standardised copy of the rows, by columns if splits look at few of them.
template <class T>
PageVector<double> standardize_rows(const Input<T, 2>& X, const Scale& scale, bool by_columns,
                                    std::int64_t n_threads, const Poll& poll) {
  const double *mean = scale.first.data(), *std = scale.second.data();
  const auto n_rows = static_cast<std::int64_t>(X.shape(0));
  const auto n_columns = static_cast<std::int64_t>(X.shape(1));
  const std::int64_t size = std::max<std::int64_t>(1, small_work / n_columns);
  PageVector<double> scaled;
  scaled.reserve(X.size());
  use_large_pages(scaled);
  scaled.resize(X.size());
  const auto task = [&](std::int64_t i, const StopFlag&) {
    const std::int64_t first = i * size, offset = first * n_columns;
    const std::int64_t n = std::min(size, n_rows - first);
    if (by_columns)
      standardize_columns(X.data() + offset, n, n_columns, mean, std, scaled.data() + first,
                          n_rows);
    else
      standardize(X.data() + offset, n, n_columns, mean, std, scaled.data() + offset);
  };
  const StandardArithmetic standard;
  if (n_rows <= size)
    task(0, StopFlag{false});
  else
    run_tasks((n_rows + size - 1) / size, n_threads, task, poll);
  return scaled;
}

template <class T>
PageVector<T> transpose(const Input<T, 2>& X) {
  const std::size_t n_rows = X.shape(0), n_columns = X.shape(1);
  PageVector<T> result(X.size());
  constexpr std::size_t few = 64;  // rows and columns of a tile that stays in a fast cache
  for (std::size_t first = 0; first < n_rows; first += few)
    for (std::size_t left = 0; left < n_columns; left += few)
      for (std::size_t j = left; j < std::min(n_columns, left + few); ++j)
        for (std::size_t i = first; i < std::min(n_rows, first + few); ++i)
          result[j * n_rows + i] = X.data()[i * n_columns + j];
  return result;
}

/// Call `grow_from` with the table that trees grow from: rows in the units of the trees, in the
/// order that their splits want. Only here is decided whether it lies by rows or by columns.
template <class T, class GrowFrom>
Forest grow_table(const Input<T, 2>& X, const std::optional<Scale>& scale, const Rules& rules,
                  std::int64_t n_threads, const Poll& poll, const GrowFrom& grow_from) {
  const auto n_rows = static_cast<std::int64_t>(X.shape(0));
  const auto n_columns = static_cast<std::int64_t>(X.shape(1));
  const bool by_columns = !rules.is_dense(n_columns);
  const auto grow = [&](const auto* value) {
    using Value = std::remove_cvref_t<decltype(*value)>;
    const bool has_missing = !is_finite(value, X.size());
    if (by_columns) return grow_from(ColumnTable<Value>(value, n_rows, n_columns, has_missing));
    return grow_from(make_row_table(value, n_rows, n_columns, has_missing, rules));
  };
  if (scale) return grow(standardize_rows(X, *scale, by_columns, n_threads, poll).data());
  return by_columns ? grow(transpose(X).data()) : grow(X.data());
}

template <class T>
void check_table(const Input<T, 2>& X, const std::optional<Scale>& scale) {
  check_not_empty(X);
  const std::size_t n_columns = X.shape(1);
  demand(!scale || (scale->first.size() == n_columns && scale->second.size() == n_columns),
         "mean and std must have one entry per column");
}

template <class T>
nb::dict grow(const Input<T, 2>& X, const std::optional<Scale>& scale,
              const Input<std::int32_t, 1>& y_encoded, const OptionalWeight& weight,
              nb::handle plan_object, std::int64_t n_threads, nb::object progress) {
  const Plan plan = read_plan(plan_object);
  check_table(X, scale);
  const Labels labels = check_labels(y_encoded, weight, X.shape(0), plan);
  const Poll poll = make_poll(progress), quiet = make_poll(nb::none());
  Forest forest;
  {
    nb::gil_scoped_release unlocked;
    // Checks of the labels copied them, 2 % of a table of 50 columns, which the allocator keeps.
    constexpr std::size_t large = 1 << 20;  // bytes
    if (X.size() * sizeof(T) >= large) trim_heap();
    forest = grow_table(X, scale, plan.rules, n_threads, quiet, [&](const auto& table) {
      return grow_forest(table, labels, plan, n_threads, poll);
    });
  }
  return to_dict(std::move(forest));
}

/// Refuse rows that the core could not walk: columns must ascend within each.
void check_sparse(const Input<std::int64_t, 1>& start, const Input<std::int32_t, 1>& column,
                  std::size_t n_values, std::int64_t n_columns) {
  const bool has_ends = start.size() > 1 && start(0) == 0 && n_columns > 0 &&
                        column.size() == n_values &&
                        start(start.size() - 1) == static_cast<std::int64_t>(n_values);
  bool is_valid = has_ends;
  for (std::size_t i = 0; is_valid && i + 1 < start.size(); ++i)
    is_valid = start(i) <= start(i + 1);
  for (std::size_t i = 0; is_valid && i + 1 < start.size(); ++i)
    for (std::int64_t k = start(i); is_valid && k < start(i + 1); ++k)
      is_valid =
          column(k) >= 0 && column(k) < n_columns && (k == start(i) || column(k - 1) < column(k));
  if (!is_valid) throw std::invalid_argument("start, column and value are not a sparse table");
}

nb::dict grow_sparse(const Input<std::int64_t, 1>& start, const Input<std::int32_t, 1>& column,
                     const Input<double, 1>& value, std::int64_t n_columns,
                     const Input<std::int32_t, 1>& y_encoded, const OptionalWeight& weight,
                     nb::handle plan_object, std::int64_t n_threads, nb::object progress) {
  const Plan plan = read_plan(plan_object);
  check_sparse(start, column, value.size(), n_columns);
  const std::size_t n_rows = start.size() - 1;
  const Labels labels = check_labels(y_encoded, weight, n_rows, plan);
  const Poll poll = make_poll(progress);
  Forest forest;
  {
    nb::gil_scoped_release unlocked;
    const SparseTable table(start.data(), column.data(), value.data(),
                            static_cast<std::int64_t>(n_rows), n_columns,
                            !plan.rules.is_dense(n_columns));
    forest = grow_forest(table, labels, plan, n_threads, poll);
  }
  return to_dict(std::move(forest));
}

/// Bits of the rows that each estimator did not draw, see old/predict.hpp, and their number by row.
std::pair<Output<std::uint64_t, 2>, Output<std::int64_t, 1>> draw_out_of_bag(
    std::uint64_t seed, std::int64_t n_estimators, std::uint32_t n_rows, std::uint32_t n_draws,
    bool bootstrap, std::int64_t n_threads) {
  if (n_rows == 0) throw std::invalid_argument("n_rows must be at least 1");
  const std::size_t n_words = (n_rows + std::size_t{63}) / 64;
  std::vector<std::uint64_t> word;
  std::vector<std::int64_t> count;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    word.assign(n_estimators * n_words, ~std::uint64_t{0});
    count.assign(n_rows, n_estimators);
    run_tasks(
        n_estimators, n_threads,
        [&](std::int64_t estimator, const StopFlag& stop) {
          for (const std::uint32_t i :
               draw_rows(seed, estimator, n_rows, n_draws, bootstrap, {}, stop).row)
            word[estimator * n_words + i / 64] &= ~(std::uint64_t{1} << (i % 64));
        },
        poll);
    const std::int64_t size = 1 << 16, n_blocks = (n_rows + size - 1) / size;
    run_tasks(
        n_blocks, n_threads,
        [&](std::int64_t block, const StopFlag& stop) {
          const std::int64_t end = std::min<std::int64_t>(n_rows, (block + 1) * size);
          for (std::int64_t estimator = 0; estimator < n_estimators; ++estimator) {
            check_stop(stop);
            for (std::int64_t i = block * size; i < end; ++i)
              count[i] -= 1 - (word[estimator * n_words + i / 64] >> (i % 64) & 1);
          }
        },
        poll);
  }
  return {to_numpy<std::uint64_t, 2>(std::move(word),
                                     {static_cast<std::size_t>(n_estimators), n_words}),
          to_numpy(std::move(count))};
}

/// Of one tree: at what cost-complexity each split becomes a leaf, and what that costs.
std::pair<Output<double, 1>, Output<double, 1>> list_pruning_links(
    const Input<std::int32_t, 1>& left, const Input<double, 1>& risk) {
  if (left.size() != risk.size()) throw std::invalid_argument("left and risk differ in length");
  const auto n_nodes = static_cast<std::int64_t>(left.size());
  for (std::int64_t i = 0; i < n_nodes; ++i)
    if (left(i) >= 0 && (left(i) <= i || left(i) + 1 >= n_nodes))
      throw std::invalid_argument("a child is out of range");
  const std::vector<std::int32_t> child(left.data(), left.data() + n_nodes);
  Links links = LinkFinder(child, {risk.data(), risk.data() + n_nodes}).take();
  return {to_numpy(std::move(links.strength)), to_numpy(std::move(links.gain))};
}

std::vector<Branch> read_branches(nb::handle branches, const StateHandle& state) {
  const auto key = get_array<std::uint64_t>(branches, "key");
  const auto tree_key = get_array<std::uint64_t>(branches, "tree_key");
  const auto depth = get_array<std::int64_t>(branches, "depth");
  const auto weight_sum = get_array<double>(branches, "weight_sum");
  const auto beta = get_array<double>(branches, "beta");
  const std::size_t n = state.n_nodes();
  demand(key.size() == n && tree_key.size() == n && depth.size() == n && weight_sum.size() == n &&
             beta.size() == n,
         "the branches do not fit together");
  std::vector<Branch> list;
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t begin = state.start(k), end = state.start(k + 1);
    demand(begin < end, "a branch must have rows");
    list.push_back({Start{key(k), tree_key(k), depth(k), weight_sum(k)}, beta(k), begin,
                    state.middle(k), end});
  }
  return list;
}

template <class T>
nb::dict branches(const Input<T, 2>& X, const std::optional<Scale>& scale, nb::handle plan_object,
                  nb::handle state_object, nb::handle branches_object, std::int64_t n_threads,
                  nb::object watch) {
  const Rules rules = read_rules(plan_object);
  check_table(X, scale);
  const StateHandle state(state_object, X.shape(0));
  const std::vector<Branch> list = read_branches(branches_object, state);
  // What `watch` raises stops the work: a cluster may not want it any more.
  const Poll poll = [watch](std::int64_t) {
    nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!watch.is_none()) watch();
  };
  const std::uint32_t* row = state.row.data();
  const double* weight = weight_of(state.weight);
  Forest forest;
  {
    nb::gil_scoped_release unlocked;
    forest = grow_table(X, scale, rules, n_threads, poll, [&](const auto& table) {
      return grow_branches(table, row, weight, list, rules, n_threads, poll);
    });
  }
  return to_dict(std::move(forest));
}

template <class T>
void bind_for(nb::module_& m) {
  const auto X = "X"_a.noconvert();
  const auto scale = "scale"_a.noconvert().none();
  m.def("grow_forest", &grow<T>, X, scale, "y_encoded"_a.noconvert(), "weight"_a.noconvert().none(),
        "plan"_a, "n_threads"_a, "progress"_a.none());
  m.def("grow_branches", &branches<T>, X, scale, "plan"_a, "state"_a, "branches"_a, "n_threads"_a,
        "watch"_a.none());
}

}  // namespace

void bind_grow(nb::module_& m) {
  bind_for<double>(m);
  bind_for<float>(m);
  m.def("grow_sparse", &grow_sparse, "start"_a.noconvert(), "column"_a.noconvert(),
        "value"_a.noconvert(), "n_columns"_a, "y_encoded"_a.noconvert(),
        "weight"_a.noconvert().none(), "plan"_a, "n_threads"_a, "progress"_a.none());
  m.def("draw_out_of_bag", &draw_out_of_bag, "seed"_a, "n_estimators"_a, "n_rows"_a, "n_draws"_a,
        "bootstrap"_a, "n_threads"_a);
  m.def("list_pruning_links", &list_pruning_links, "left"_a.noconvert(), "risk"_a.noconvert());
}

}  // namespace lhtree
