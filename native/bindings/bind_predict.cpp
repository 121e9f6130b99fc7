// What a grown forest says of rows: votes, leaves, contributions.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "old/explain.hpp"
#include "old/predict.hpp"
#include "old/shrink.hpp"
#include "threads.hpp"

namespace lhtree {
namespace {

/// A forest's arrays, kept alive, with their lengths checked against each other.
struct ForestHandle {
  Input<std::int64_t, 1> tree_start, start, feature_start, n_samples;
  Input<std::int32_t, 1> positive_class, left, feature;
  Input<double, 1> weight, center, threshold, norm, value, mean, std;

  explicit ForestHandle(nb::handle forest)
      : tree_start(get_array<std::int64_t>(forest, "tree_start")),
        start(get_array<std::int64_t>(forest, "start")),
        feature_start(get_array<std::int64_t>(forest, "feature_start")),
        n_samples(get_array<std::int64_t>(forest, "n_samples")),
        positive_class(get_array<std::int32_t>(forest, "positive_class")),
        left(get_array<std::int32_t>(forest, "left")),
        feature(get_array<std::int32_t>(forest, "feature")),
        weight(get_array<double>(forest, "weight")),
        center(get_array<double>(forest, "center")),
        threshold(get_array<double>(forest, "threshold")),
        norm(get_array<double>(forest, "norm")),
        value(get_array<double>(forest, "value")),
        mean(get_array<double>(forest, "column_mean")),
        std(get_array<double>(forest, "column_std")) {
    const std::size_t n_nodes = left.size();
    const bool is_whole = tree_start.size() == positive_class.size() + 1 &&
                          start.size() == n_nodes + 1 && feature_start.size() == n_nodes + 1 &&
                          threshold.size() == n_nodes && norm.size() == n_nodes &&
                          value.size() == n_nodes && n_samples.size() == n_nodes &&
                          center.size() == weight.size() && std.size() == mean.size() &&
                          tree_start(positive_class.size()) == static_cast<std::int64_t>(n_nodes) &&
                          start(n_nodes) == static_cast<std::int64_t>(weight.size()) &&
                          feature_start(n_nodes) == static_cast<std::int64_t>(feature.size());
    if (!is_whole) throw std::invalid_argument("the arrays of the forest do not fit together");
  }

  ForestView view() const {
    return {static_cast<std::int64_t>(positive_class.size()),
            static_cast<std::int64_t>(mean.size()),
            static_cast<std::int64_t>(weight.size()),
            tree_start.data(),
            positive_class.data(),
            left.data(),
            start.data(),
            feature_start.data(),
            feature.data(),
            weight.data(),
            center.data(),
            threshold.data(),
            norm.data(),
            value.data(),
            n_samples.data()};
  }
  Scaling scaling() const { return {mean.data(), std.data()}; }
};

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

void check_classes(const ForestHandle& forest, std::int64_t n_classes) {
  for (std::size_t k = 0; k < forest.positive_class.size(); ++k)
    if (forest.positive_class(k) < 0 || forest.positive_class(k) >= n_classes)
      throw std::invalid_argument("a tree's positive class is out of range");
}

template <class T>
void check_rows(const ForestHandle& forest, const Input<T, 2>& X) {
  check_not_empty(X);
  check_length(forest.mean.size(), X.shape(1), "column_mean");
}

LeftOut read_out_of_bag(const std::optional<Input<std::uint64_t, 2>>& out_of_bag,
                        std::size_t n_rows, std::size_t n_trees,
                        std::int64_t n_trees_per_estimator) {
  if (!out_of_bag) return {};
  if (n_trees_per_estimator < 1 || out_of_bag->shape(1) * 64 < n_rows ||
      out_of_bag->shape(0) * n_trees_per_estimator < n_trees)
    throw std::invalid_argument("out_of_bag does not fit the rows and trees");
  return {out_of_bag->data(), static_cast<std::int64_t>(out_of_bag->shape(1)),
          n_trees_per_estimator};
}

template <class T>
std::tuple<Output<double, 2>, Output<double, 2>, Output<double, 1>> vote(
    nb::handle forest_object, const Input<T, 2>& X, std::int64_t n_classes, bool by_margin,
    const std::optional<Input<std::uint64_t, 2>>& out_of_bag, std::int64_t n_trees_per_estimator,
    std::int64_t n_threads) {
  const ForestHandle forest(forest_object);
  check_rows(forest, X);
  const std::size_t n_rows = X.shape(0);
  check_classes(forest, n_classes);
  const LeftOut bits =
      read_out_of_bag(out_of_bag, n_rows, forest.positive_class.size(), n_trees_per_estimator);
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

/// Weights of the nodes, which shrinkage reads.
Input<double, 1> read_weight_sum(nb::handle forest, std::size_t n_nodes) {
  auto weight_sum = get_array<double>(forest, "weight_sum");
  demand(weight_sum.size() == n_nodes, "the arrays of the forest do not fit together");
  return weight_sum;
}

/// What `vote` returns for the forest shrunk by each of the strengths.
template <class T>
std::tuple<Output<double, 3>, Output<double, 3>, Output<double, 2>> vote_shrunk(
    nb::handle forest_object, const Input<T, 2>& X, const std::vector<double>& strength,
    std::int64_t n_classes, bool by_margin,
    const std::optional<Input<std::uint64_t, 2>>& out_of_bag, std::int64_t n_trees_per_estimator,
    std::int64_t n_threads) {
  const ForestHandle forest(forest_object);
  const auto weight_sum = read_weight_sum(forest_object, forest.left.size());
  const Shares plain{forest.value.data(), weight_sum.data()};
  check_rows(forest, X);
  check_classes(forest, n_classes);
  const std::size_t n_rows = X.shape(0), n_cells = n_rows * n_classes, n_each = strength.size();
  if (n_each == 0) throw std::invalid_argument("strength must not be empty");
  const LeftOut bits =
      read_out_of_bag(out_of_bag, n_rows, forest.positive_class.size(), n_trees_per_estimator);
  const std::size_t n_complements = by_margin ? n_rows : 0;
  std::vector<double> sums(n_each * n_cells), distances(n_each * n_cells);
  std::vector<double> complement(n_each * n_complements);
  std::vector<Votes> votes;
  for (std::size_t v = 0; v < n_each; ++v)
    votes.push_back({sums.data() + v * n_cells, distances.data() + v * n_cells,
                     complement.data() + v * n_complements, n_classes, by_margin});
  const ForestView view = forest.view();
  run_blocks(view, static_cast<std::int64_t>(n_rows), n_threads,
             [&](RowRange range, const StopFlag& stop) {
               vote_shrunk_rows(view, plain, strength, X.data(), range, forest.scaling(), bits,
                                votes, stop);
             });
  const std::array<std::size_t, 3> shape{n_each, n_rows, static_cast<std::size_t>(n_classes)};
  return {to_numpy<double, 3>(std::move(sums), shape),
          to_numpy<double, 3>(std::move(distances), shape),
          to_numpy<double, 2>(std::move(complement), {n_each, n_complements})};
}

/// The values of all nodes, shrunk.
Output<double, 1> shrink(nb::handle forest_object, double strength) {
  const ForestHandle forest(forest_object);
  const auto weight_sum = read_weight_sum(forest_object, forest.left.size());
  const Shares plain{forest.value.data(), weight_sum.data()};
  const ForestView view = forest.view();
  std::vector<double> shrunk(forest.left.size());
  for (std::int64_t tree = 0; tree < view.n_trees; ++tree)
    shrink_tree(view, tree, plain, {strength}, shrunk.data() + view.tree_start[tree]);
  return to_numpy(std::move(shrunk));
}

template <class T>
Output<std::int64_t, 2> apply(nb::handle forest_object, const Input<T, 2>& X,
                              std::int64_t n_threads) {
  const ForestHandle forest(forest_object);
  check_rows(forest, X);
  const std::size_t n_rows = X.shape(0), n_trees = forest.positive_class.size();
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
  check_rows(forest, X);
  check_classes(forest, static_cast<std::int64_t>(n_classes));
  const std::size_t n_rows = X.shape(0), n_columns = X.shape(1);
  const ForestView view = forest.view();
  const std::vector<std::int32_t> parent = find_parents(view);
  const Explained model{view, forest.value.data(), parent.data()};
  std::vector<double> vote(n_rows * n_classes), total(n_rows * n_classes * n_columns);
  const Contributions sums{vote.data(), total.data(), static_cast<std::int64_t>(n_classes)};
  run_blocks(view, static_cast<std::int64_t>(n_rows), n_threads,
             [&](RowRange range, const StopFlag& stop) {
               explain_rows(model, X.data(), range, forest.scaling(), sums, stop);
             });
  return {to_numpy<double, 2>(std::move(vote), {n_rows, n_classes}),
          to_numpy<double, 3>(std::move(total), {n_rows, n_classes, n_columns})};
}

template <class T>
void bind_for(nb::module_& m) {
  m.def("vote", &vote<T>, "forest"_a, "X"_a.noconvert(), "n_classes"_a, "by_margin"_a,
        "out_of_bag"_a.noconvert().none(), "n_trees_per_estimator"_a, "n_threads"_a);
  m.def("vote_shrunk", &vote_shrunk<T>, "forest"_a, "X"_a.noconvert(), "strength"_a, "n_classes"_a,
        "by_margin"_a, "out_of_bag"_a.noconvert().none(), "n_trees_per_estimator"_a, "n_threads"_a);
  m.def("apply", &apply<T>, "forest"_a, "X"_a.noconvert(), "n_threads"_a);
  m.def("explain", &explain<T>, "forest"_a, "X"_a.noconvert(), "n_classes"_a, "n_threads"_a);
}

}  // namespace

void bind_predict(nb::module_& m) {
  m.def("shrink", &shrink, "forest"_a, "strength"_a);
  bind_for<double>(m);
  bind_for<float>(m);
}

}  // namespace lhtree
