// The core as Python sees it: NumPy in, NumPy out.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "explain.hpp"
#include "forest.hpp"
#include "numpy.hpp"
#include "predict.hpp"
#include "scale.hpp"

namespace lhtree {

Plan read_plan(nb::handle plan) {
  Plan result;
  const auto read = [plan](const char* name, auto& value) {
    value = nb::cast<std::remove_reference_t<decltype(value)>>(plan.attr(name));
  };
  read("seed", result.seed);
  read("first_member", result.first_member);
  read("beta", result.beta);
  read("target", result.target);
  read("n_draws", result.n_draws);
  read("bootstrap", result.bootstrap);
  read("balance", result.balance);
  read("n_classes", result.n_classes);
  result.rules.contrast = static_cast<Contrast>(nb::cast<int>(plan.attr("contrast")));
  result.rules.cut = static_cast<Cut>(nb::cast<int>(plan.attr("cut")));
  read("axes", result.rules.axes);
  read("n_planes", result.rules.n_planes);
  read("alpha", result.rules.alpha);
  read("gamma", result.rules.gamma);
  read("min_samples_split", result.rules.min_samples_split);
  read("max_depth", result.rules.max_depth);
  read("min_weight_fraction_leaf", result.rules.min_weight_fraction_leaf);
  read("min_samples_leaf", result.rules.min_samples_leaf);
  read("max_leaf_nodes", result.rules.max_leaf_nodes);
  read("ccp_alpha", result.rules.ccp_alpha);
  read("n_columns", result.rules.n_columns);
  read("n_columns_per_tree", result.rules.n_columns_per_tree);
  return result;
}

/// Lets Python handle signals (Ctrl-C) and hear of progress while threads work.
Poll make_poll(nb::handle progress) {
  return [progress, last = std::int64_t{-1}](std::int64_t n_done) mutable {
    nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none() && n_done != last) progress(last = n_done);
  };
}

nb::dict to_dict(Forest forest) {
  nb::dict result;
  const std::size_t n_nodes = forest.left.size();
  result["tree_start"] = to_numpy(std::move(forest.tree_start));
  result["target"] = to_numpy(std::move(forest.target));
  result["left"] = to_numpy(std::move(forest.left));
  result["start"] = to_numpy(std::move(forest.start));
  result["feature_start"] = to_numpy(std::move(forest.feature_start));
  result["feature"] = to_numpy(std::move(forest.feature));
  result["weight"] = to_numpy(std::move(forest.weight));
  result["center"] = to_numpy(std::move(forest.center));
  result["deviation"] = to_numpy(std::move(forest.deviation));
  result["threshold"] = to_numpy(std::move(forest.threshold));
  result["norm"] = to_numpy(std::move(forest.norm));
  result["share"] = to_numpy(std::move(forest.share));
  result["n_samples"] = to_numpy(std::move(forest.n_samples));
  result["weight_sum"] = to_numpy(std::move(forest.weight_sum));
  result["rule"] = to_numpy(std::move(forest.rule));
  result["extremes"] = to_numpy<double, 2>(std::move(forest.extremes), {n_nodes, 4});
  return result;
}

}  // namespace lhtree

namespace {

using namespace lhtree;

/// A field of a Python object as an array of the given type, never converted.
template <class T, int n_dim = 1>
Input<T, n_dim> get_array(nb::handle object, const char* name) {
  Input<T, n_dim> array;
  if (!nb::try_cast(object.attr(name), array, false))
    throw std::invalid_argument(std::string("the forest's array '") + name +
                                "' has the wrong type, order or number of dimensions");
  return array;
}

/// A forest's arrays, kept alive, with their lengths checked against each other.
struct ForestHandle {
  Input<std::int64_t, 1> tree_start, start, feature_start, n_samples;
  Input<std::int32_t, 1> target, left, feature;
  Input<double, 1> weight, center, threshold, norm, mean, deviation;

  explicit ForestHandle(nb::handle forest)
      : tree_start(get_array<std::int64_t>(forest, "tree_start")),
        start(get_array<std::int64_t>(forest, "start")),
        feature_start(get_array<std::int64_t>(forest, "feature_start")),
        n_samples(get_array<std::int64_t>(forest, "n_samples")),
        target(get_array<std::int32_t>(forest, "target")),
        left(get_array<std::int32_t>(forest, "left")),
        feature(get_array<std::int32_t>(forest, "feature")),
        weight(get_array<double>(forest, "weight")),
        center(get_array<double>(forest, "center")),
        threshold(get_array<double>(forest, "threshold")),
        norm(get_array<double>(forest, "norm")),
        mean(get_array<double>(forest, "column_mean")),
        deviation(get_array<double>(forest, "column_deviation")) {
    const std::size_t n_nodes = left.size();
    const bool is_whole = tree_start.size() == target.size() + 1 && start.size() == n_nodes + 1 &&
                          feature_start.size() == n_nodes + 1 && threshold.size() == n_nodes &&
                          norm.size() == n_nodes && n_samples.size() == n_nodes &&
                          center.size() == weight.size() && deviation.size() == mean.size() &&
                          tree_start(target.size()) == static_cast<std::int64_t>(n_nodes) &&
                          start(n_nodes) == static_cast<std::int64_t>(weight.size()) &&
                          feature_start(n_nodes) == static_cast<std::int64_t>(feature.size());
    if (!is_whole) throw std::invalid_argument("the arrays of the forest do not fit together");
  }

  ForestView view() const {
    return {static_cast<std::int64_t>(target.size()),
            static_cast<std::int64_t>(mean.size()),
            static_cast<std::int64_t>(weight.size()),
            tree_start.data(),
            target.data(),
            left.data(),
            start.data(),
            feature_start.data(),
            feature.data(),
            weight.data(),
            center.data(),
            threshold.data(),
            norm.data(),
            n_samples.data()};
  }
  Scaling scaling() const { return {mean.data(), deviation.data()}; }
};

const double* weight_of(const OptionalWeight& weight) { return weight ? weight->data() : nullptr; }

template <class T>
void check_not_empty(const Input<T, 2>& X) {
  if (X.shape(0) == 0 || X.shape(1) == 0) throw std::invalid_argument("X must not be empty");
}

void check_length(std::size_t length, std::size_t n_rows, const char* name) {
  if (length != n_rows)
    throw std::invalid_argument(std::string(name) + " must have one entry per row");
}

template <class T>
bool is_finite(const Input<T, 2>& X) {
  // Zeros stay zero in a sum; infinities and NaN, times zero, make it NaN.
  const std::size_t n_whole = X.size() / lane_count * lane_count;
  Lanes sums = fill(0.0);
  for (std::size_t i = 0; i < n_whole; i += lane_count)
    sums = sums + load(X.data() + i) * fill(0.0);
  double sum = combine(sums);
  for (std::size_t i = n_whole; i < X.size(); ++i) sum += X.data()[i] * 0.0;
  return sum == 0.0;
}

template <class T>
bool has_infinity(const Input<T, 2>& X) {
  bool is_found = false;
  for (std::size_t i = 0; i < X.size(); ++i)
    is_found |= std::abs(X.data()[i]) > std::numeric_limits<T>::max();
  return is_found;
}

Labels check_labels(const Input<std::int32_t, 1>& code, const OptionalWeight& weight,
                    std::size_t n_rows, const Plan& plan) {
  check_length(code.size(), n_rows, "code");
  if (weight) check_length(weight->size(), n_rows, "weight");
  for (std::size_t i = 0; i < code.size(); ++i)
    if (code(i) < 0 || code(i) >= plan.n_classes) throw std::invalid_argument("a code is no class");
  return {code.data(), weight_of(weight)};
}

template <class T>
nb::dict grow(const Input<T, 2>& X, const Input<std::int32_t, 1>& code,
              const OptionalWeight& weight, nb::handle plan_object, std::int64_t n_threads,
              nb::object progress) {
  const Plan plan = read_plan(plan_object);
  check_not_empty(X);
  // Splits over few columns read the table by columns: X is then transposed.
  const bool by_columns = nb::cast<bool>(plan_object.attr("by_columns"));
  const auto n_rows = static_cast<std::int64_t>(X.shape(by_columns ? 1 : 0));
  const auto n_columns = static_cast<std::int64_t>(X.shape(by_columns ? 0 : 1));
  if (by_columns == plan.rules.is_dense(n_columns))
    throw std::invalid_argument("by_columns does not fit the other fields of the plan");
  const Labels labels = check_labels(code, weight, n_rows, plan);
  const Poll poll = make_poll(progress);
  Forest forest;
  {
    nb::gil_scoped_release unlocked;
    const bool has_missing = !is_finite(X);
    if (by_columns)
      forest = grow_forest(ColumnTable<T>(X.data(), n_rows, n_columns, has_missing), labels, plan,
                           n_threads, poll);
    else
      forest = grow_forest(make_row_table(X.data(), n_rows, n_columns, has_missing, plan.rules),
                           labels, plan, n_threads, poll);
  }
  return to_dict(std::move(forest));
}

/// Refuse rows that the core could not walk: columns must ascend within each.
void check_sparse(const Input<std::int64_t, 1>& start, const Input<std::int32_t, 1>& column,
                  std::size_t n_values, std::int64_t n_columns) {
  const bool has_ends = start.size() > 1 && start(0) == 0 && n_columns > 0 &&
                        column.size() == n_values &&
                        start(start.size() - 1) == static_cast<std::int64_t>(n_values);
  bool is_sound = has_ends;
  for (std::size_t i = 0; is_sound && i + 1 < start.size(); ++i)
    is_sound = start(i) <= start(i + 1);
  for (std::size_t i = 0; is_sound && i + 1 < start.size(); ++i)
    for (std::int64_t k = start(i); is_sound && k < start(i + 1); ++k)
      is_sound =
          column(k) >= 0 && column(k) < n_columns && (k == start(i) || column(k - 1) < column(k));
  if (!is_sound) throw std::invalid_argument("start, column and value are no sparse table");
}

nb::dict grow_sparse(const Input<std::int64_t, 1>& start, const Input<std::int32_t, 1>& column,
                     const Input<double, 1>& value, std::int64_t n_columns,
                     const Input<std::int32_t, 1>& code, const OptionalWeight& weight,
                     nb::handle plan_object, std::int64_t n_threads, nb::object progress) {
  const Plan plan = read_plan(plan_object);
  check_sparse(start, column, value.size(), n_columns);
  const std::size_t n_rows = start.size() - 1;
  const bool by_columns = nb::cast<bool>(plan_object.attr("by_columns"));
  if (by_columns == plan.rules.is_dense(n_columns))
    throw std::invalid_argument("by_columns does not fit the other fields of the plan");
  const Labels labels = check_labels(code, weight, n_rows, plan);
  const Poll poll = make_poll(progress);
  Forest forest;
  {
    nb::gil_scoped_release unlocked;
    const SparseTable table(start.data(), column.data(), value.data(),
                            static_cast<std::int64_t>(n_rows), n_columns, by_columns);
    forest = grow_forest(table, labels, plan, n_threads, poll);
  }
  return to_dict(std::move(forest));
}

/// Work that is not worth a thread: a few milliseconds, too short for an interrupt.
constexpr std::int64_t small_work = 1 << 20;  // values to be read once

/// Run task(stop) without the interpreter's lock, on a thread of its own if it is long.
template <class Task>
void run_alone(std::int64_t n_values, const Task& task) {
  const Poll poll = make_poll(nb::none());
  nb::gil_scoped_release unlocked;
  if (n_values > small_work)
    return run_tasks(1, 1, [&](std::int64_t, const StopFlag& stop) { task(stop); }, poll);
  const StandardArithmetic standard;
  task(StopFlag{false});
}

template <class T>
std::pair<Output<double, 1>, Output<double, 1>> scale(const Input<T, 2>& X,
                                                      const OptionalWeight& weight) {
  check_not_empty(X);
  if (weight) check_length(weight->size(), X.shape(0), "weight");
  ColumnScale result;
  run_alone(X.size(), [&](const StopFlag& stop) {
    const Table<T> table(X.data(), X.shape(0), X.shape(1), !is_finite(X));
    result = find_scale(table, weight_of(weight), stop);
  });
  return {to_numpy(std::move(result.mean)), to_numpy(std::move(result.deviation))};
}

template <class T>
Output<std::int64_t, 1> beyond(const Input<T, 2>& X, double limit) {
  std::vector<std::int64_t> result;
  run_alone(X.size(), [&](const StopFlag& stop) {
    result = find_beyond(X.data(), static_cast<std::int64_t>(X.shape(0)),
                         static_cast<std::int64_t>(X.shape(1)), limit, stop);
  });
  return to_numpy(std::move(result));
}

template <class T>
Output<double, 2> standardized(const Input<T, 2>& X, const Input<double, 1>& mean,
                               const Input<double, 1>& deviation, bool by_columns,
                               std::int64_t n_threads) {
  check_not_empty(X);
  check_length(mean.size(), X.shape(1), "mean");
  check_length(deviation.size(), X.shape(1), "deviation");
  const auto n_rows = static_cast<std::int64_t>(X.shape(0));
  const auto n_columns = static_cast<std::int64_t>(X.shape(1));
  const std::int64_t size = std::max<std::int64_t>(1, small_work / n_columns);
  std::unique_ptr<double[]> scaled(new double[X.size()]);  // not filled twice
  const auto task = [&](std::int64_t i, const StopFlag&) {
    const std::int64_t first = i * size, offset = first * n_columns;
    const std::int64_t n = std::min(size, n_rows - first);
    if (by_columns)
      standardize_columns(X.data() + offset, n, n_columns, mean.data(), deviation.data(),
                          scaled.get() + first, n_rows);
    else
      standardize(X.data() + offset, n, n_columns, mean.data(), deviation.data(),
                  scaled.get() + offset);
  };
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    const StandardArithmetic standard;
    if (n_rows <= size)
      task(0, StopFlag{false});
    else
      run_tasks((n_rows + size - 1) / size, n_threads, task, poll);
  }
  nb::capsule owner(scaled.get(), [](void* p) noexcept { delete[] static_cast<double*>(p); });
  const std::size_t first = by_columns ? X.shape(1) : X.shape(0);
  return Output<double, 2>(scaled.release(), {first, X.size() / first}, owner);
}

/// Run task(range, stop) over blocks of rows; few rows need no thread.
template <class Task>
void run_blocks(const ForestView& forest, std::int64_t n_rows, std::int64_t n_threads,
                const Task& task) {
  const Poll poll = make_poll(nb::none());
  nb::gil_scoped_release unlocked;
  n_threads = std::max<std::int64_t>(1, n_threads);
  const std::int64_t size = count_rows_per_task(n_rows, forest.n_features, n_threads);
  constexpr std::int64_t nodes_per_path = 16;
  const std::int64_t most_trees = small_work / (nodes_per_path * forest.n_features) / n_rows;
  if (n_rows <= size && forest.n_trees <= most_trees) {
    const StandardArithmetic standard;
    return task(RowRange{0, n_rows}, StopFlag{false});
  }
  run_tasks((n_rows + size - 1) / size, n_threads,
            [&](std::int64_t i, const StopFlag& stop) {
              task(RowRange{i * size, std::min(size, n_rows - i * size)}, stop);
            },
            poll);
}

void check_targets(const ForestHandle& forest, std::int64_t n_classes) {
  for (std::size_t k = 0; k < forest.target.size(); ++k)
    if (forest.target(k) < 0 || forest.target(k) >= n_classes)
      throw std::invalid_argument("a tree's target is no class");
}

template <class T>
void check_rows(const ForestHandle& forest, const Input<T, 2>& X) {
  check_not_empty(X);
  check_length(forest.mean.size(), X.shape(1), "column_mean");
}

template <class T>
std::tuple<Output<double, 2>, Output<double, 2>, Output<double, 1>> vote(
    nb::handle forest_object, const Input<T, 2>& X, std::int64_t n_classes, bool by_margin,
    const std::optional<Input<std::uint64_t, 2>>& left_out, std::int64_t n_trees_per_member,
    std::int64_t n_threads) {
  const ForestHandle forest(forest_object);
  check_rows(forest, X);
  const std::size_t n_rows = X.shape(0);
  check_targets(forest, n_classes);
  LeftOut bits;
  if (left_out) {
    if (n_trees_per_member < 1 || left_out->shape(1) * 64 < n_rows ||
        left_out->shape(0) * n_trees_per_member < forest.target.size())
      throw std::invalid_argument("left_out does not fit the rows and trees");
    bits = {left_out->data(), static_cast<std::int64_t>(left_out->shape(1)), n_trees_per_member};
  }
  std::vector<double> sums(n_rows * n_classes), distances(n_rows * n_classes);
  std::vector<double> complement(by_margin ? n_rows : 0);
  const Votes votes{sums.data(), distances.data(), complement.data(), n_classes, by_margin};
  const ForestView view = forest.view();
  run_blocks(view, static_cast<std::int64_t>(n_rows), n_threads,
             [&](RowRange range, const StopFlag& stop) {
               vote_rows(view, X.data(), range, forest.scaling(), bits, votes, stop);
             });
  const std::array<std::size_t, 2> shape{n_rows, static_cast<std::size_t>(n_classes)};
  return {to_numpy<double, 2>(std::move(sums), shape),
          to_numpy<double, 2>(std::move(distances), shape), to_numpy(std::move(complement))};
}

template <class T>
Output<std::int64_t, 2> apply(nb::handle forest_object, const Input<T, 2>& X,
                              std::int64_t n_threads) {
  const ForestHandle forest(forest_object);
  check_rows(forest, X);
  const std::size_t n_rows = X.shape(0), n_trees = forest.target.size();
  std::vector<std::int64_t> leaf(n_rows * n_trees);
  const ForestView view = forest.view();
  run_blocks(view, static_cast<std::int64_t>(n_rows), n_threads,
             [&](RowRange range, const StopFlag& stop) {
               apply_rows(view, X.data(), range, forest.scaling(), leaf.data(), stop);
             });
  return to_numpy<std::int64_t, 2>(std::move(leaf), {n_rows, n_trees});
}

/// Sums over the trees of each class: memberships, and what each column adds to them.
template <class T>
std::pair<Output<double, 2>, Output<double, 3>> explain(nb::handle forest_object,
                                                        const Input<T, 2>& X, std::size_t n_classes,
                                                        std::int64_t n_threads) {
  const ForestHandle forest(forest_object);
  const auto share = get_array<double>(forest_object, "share");
  check_rows(forest, X);
  check_targets(forest, static_cast<std::int64_t>(n_classes));
  if (share.size() != forest.left.size())
    throw std::invalid_argument("the arrays of the forest do not fit together");
  const std::size_t n_rows = X.shape(0), n_columns = X.shape(1);
  const ForestView view = forest.view();
  const std::vector<std::int32_t> parent = find_parents(view);
  const Explained model{view, share.data(), parent.data()};
  std::vector<double> vote(n_rows * n_classes), total(n_rows * n_classes * n_columns);
  const Contributions sums{vote.data(), total.data(), static_cast<std::int64_t>(n_classes)};
  run_blocks(view, static_cast<std::int64_t>(n_rows), n_threads,
             [&](RowRange range, const StopFlag& stop) {
               explain_rows(model, X.data(), range, forest.scaling(), sums, stop);
             });
  return {to_numpy<double, 2>(std::move(vote), {n_rows, n_classes}),
          to_numpy<double, 3>(std::move(total), {n_rows, n_classes, n_columns})};
}

/// Bits of the rows that each member did not draw, see LeftOut, and their number by row.
std::pair<Output<std::uint64_t, 2>, Output<std::int64_t, 1>> find_left_out(
    std::uint64_t seed, std::int64_t n_members, std::uint32_t n_rows, std::uint32_t n_draws,
    bool bootstrap, std::int64_t n_threads) {
  if (n_rows == 0) throw std::invalid_argument("n_rows must be at least 1");
  const std::size_t n_words = (n_rows + std::size_t{63}) / 64;
  std::vector<std::uint64_t> word;
  std::vector<std::int64_t> count;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    word.assign(n_members * n_words, ~std::uint64_t{0});
    count.assign(n_rows, n_members);
    run_tasks(
        n_members, n_threads,
        [&](std::int64_t member, const StopFlag& stop) {
          for (const std::uint32_t i :
               draw_rows(seed, member, n_rows, n_draws, bootstrap, stop).row)
            word[member * n_words + i / 64] &= ~(std::uint64_t{1} << (i % 64));
        },
        poll);
    const std::int64_t size = 1 << 16, n_blocks = (n_rows + size - 1) / size;
    run_tasks(
        n_blocks, n_threads,
        [&](std::int64_t block, const StopFlag& stop) {
          const std::int64_t end = std::min<std::int64_t>(n_rows, (block + 1) * size);
          for (std::int64_t member = 0; member < n_members; ++member) {
            check_stop(stop);
            for (std::int64_t i = block * size; i < end; ++i)
              count[i] -= 1 - (word[member * n_words + i / 64] >> (i % 64) & 1);
          }
        },
        poll);
  }
  return {
      to_numpy<std::uint64_t, 2>(std::move(word), {static_cast<std::size_t>(n_members), n_words}),
      to_numpy(std::move(count))};
}

/// Of one tree: at what cost-complexity each split becomes a leaf, and what that costs.
std::pair<Output<double, 1>, Output<double, 1>> find_links(const Input<std::int32_t, 1>& left,
                                                           const Input<double, 1>& risk) {
  if (left.size() != risk.size()) throw std::invalid_argument("left and risk differ in length");
  const auto n_nodes = static_cast<std::int64_t>(left.size());
  for (std::int64_t i = 0; i < n_nodes; ++i)
    if (left(i) >= 0 && (left(i) <= i || left(i) + 1 >= n_nodes))
      throw std::invalid_argument("a child is out of range");
  const std::vector<std::int32_t> child(left.data(), left.data() + n_nodes);
  Links links = LinkFinder(child, {risk.data(), risk.data() + n_nodes}).take();
  return {to_numpy(std::move(links.strength)), to_numpy(std::move(links.gain))};
}

template <class T>
void bind_for(nb::module_& m) {
  m.def("grow_forest", &grow<T>, "X"_a.noconvert(), "code"_a.noconvert(),
        "weight"_a.noconvert().none(), "plan"_a, "n_threads"_a, "progress"_a.none());
  m.def("find_scale", &scale<T>, "X"_a.noconvert(), "weight"_a.noconvert().none());
  m.def("find_beyond", &beyond<T>, "X"_a.noconvert(), "limit"_a);
  m.def("has_infinity", &has_infinity<T>, "X"_a.noconvert());
  m.def("standardize", &standardized<T>, "X"_a.noconvert(), "mean"_a.noconvert(),
        "deviation"_a.noconvert(), "by_columns"_a, "n_threads"_a);
  m.def("vote", &vote<T>, "forest"_a, "X"_a.noconvert(), "n_classes"_a, "by_margin"_a,
        "left_out"_a.noconvert().none(), "n_trees_per_member"_a, "n_threads"_a);
  m.def("apply", &apply<T>, "forest"_a, "X"_a.noconvert(), "n_threads"_a);
  m.def("explain", &explain<T>, "forest"_a, "X"_a.noconvert(), "n_classes"_a, "n_threads"_a);
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Native core of lhtree: free functions on arrays.";
  bind_for<double>(m);
  bind_for<float>(m);
  m.def("grow_sparse", &grow_sparse, "start"_a.noconvert(), "column"_a.noconvert(),
        "value"_a.noconvert(), "n_columns"_a, "code"_a.noconvert(), "weight"_a.noconvert().none(),
        "plan"_a, "n_threads"_a, "progress"_a.none());
  m.def("find_links", &find_links, "left"_a.noconvert(), "risk"_a.noconvert());
  m.def("find_left_out", &find_left_out, "seed"_a, "n_members"_a, "n_rows"_a, "n_draws"_a,
        "bootstrap"_a, "n_threads"_a);
  bind_distributed(m);
}
