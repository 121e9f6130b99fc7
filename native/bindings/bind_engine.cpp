// The exact engine: bins, and boosting on them.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/binned_table.hpp"
#include "grow/boosting.hpp"
#include "read_rules.hpp"
#include "threads.hpp"

namespace lhtree {
namespace {

/// The bins of a table, the thresholds between those of each column, and where they start.
template <class T>
nb::tuple bin_table(const Input<T, 2>& X, std::int64_t n_threads) {
  check_not_empty(X);
  base::Binned binned;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    binned = base::Binner<T>(X.data(), static_cast<std::int64_t>(X.shape(0)),
                             static_cast<std::int64_t>(X.shape(1)))
                 .run(n_threads, poll);
  }
  std::vector<double> threshold;
  std::vector<std::int64_t> start{0};
  for (const std::vector<double>& each : binned.threshold) {
    threshold.insert(threshold.end(), each.begin(), each.end());
    start.push_back(static_cast<std::int64_t>(threshold.size()));
  }
  return nb::make_tuple(to_numpy<std::uint8_t, 2>(std::move(binned.bin), {X.shape(0), X.shape(1)}),
                        to_numpy(std::move(threshold)), to_numpy(std::move(start)));
}

/// The table on the grids of its columns.
template <class T>
Output<std::int32_t, 2> place_table(const Input<T, 2>& X, std::int64_t n_threads) {
  check_not_empty(X);
  std::vector<std::int32_t> z;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    z = base::place_table(X.data(), static_cast<std::int64_t>(X.shape(0)),
                          static_cast<std::int64_t>(X.shape(1)), n_threads, poll);
  }
  return to_numpy<std::int32_t, 2>(std::move(z), {X.shape(0), X.shape(1)});
}

/// Refuse bins that would lie outside of a histogram.
base::BinnedTable read_bins(const Input<std::uint8_t, 2>& bin, const Ints& n_bins) {
  check_not_empty(bin);
  demand(n_bins.size() == bin.shape(1), "n_bins must have one entry per column");
  std::vector<int> sizes;
  for (std::size_t j = 0; j < n_bins.size(); ++j) {
    demand(1 <= n_bins(j) && n_bins(j) <= base::most_bins, "n_bins must lie from 1 to 255");
    sizes.push_back(n_bins(j));
  }
  for (std::size_t i = 0; i < bin.size(); ++i)
    demand(bin.data()[i] <= sizes[i % sizes.size()], "a bin is out of range");
  return {static_cast<std::int64_t>(bin.shape(0)), std::move(sizes), bin.data()};
}

/// The nodes of all trees as arrays, each tree in the order of its growth.
nb::dict to_dict(const std::vector<grow::BoostedTree>& trees) {
  std::vector<std::int64_t> tree_start{0}, n_samples, term_start{0}, threshold;
  std::vector<std::int32_t> left, column, cut, value, feature, weight, fill;
  std::vector<std::uint8_t> missing_left;
  std::vector<double> gain;
  for (const grow::BoostedTree& tree : trees) {
    for (std::size_t k = 0; k < tree.node.size(); ++k) {
      const grow::Node& node = tree.node[k];
      const bool is_split = node.left >= 0;
      left.push_back(static_cast<std::int32_t>(node.left));
      column.push_back(is_split ? static_cast<std::int32_t>(node.split.column) : -1);
      cut.push_back(is_split ? node.split.cut : -1);
      missing_left.push_back(is_split && node.split.missing_left);
      gain.push_back(is_split ? node.split.gain : 0.0);
      value.push_back(tree.value[k]);
      n_samples.push_back(node.n_rows());
      threshold.push_back(is_split ? node.threshold : 0);
      if (is_split) {
        const split::Hyperplane& plane = node.hyperplane;
        feature.insert(feature.end(), plane.column.begin(), plane.column.end());
        weight.insert(weight.end(), plane.weight.begin(), plane.weight.end());
        fill.insert(fill.end(), plane.fill.begin(), plane.fill.end());
      }
      term_start.push_back(static_cast<std::int64_t>(feature.size()));
    }
    tree_start.push_back(static_cast<std::int64_t>(left.size()));
  }
  nb::dict result;
  result["tree_start"] = to_numpy(std::move(tree_start));
  result["left"] = to_numpy(std::move(left));
  result["column"] = to_numpy(std::move(column));
  result["cut"] = to_numpy(std::move(cut));
  result["missing_left"] = to_numpy(std::move(missing_left));
  result["gain"] = to_numpy(std::move(gain));
  result["value"] = to_numpy(std::move(value));
  result["n_samples"] = to_numpy(std::move(n_samples));
  result["term_start"] = to_numpy(std::move(term_start));
  result["feature"] = to_numpy(std::move(feature));
  result["weight"] = to_numpy(std::move(weight));
  result["fill"] = to_numpy(std::move(fill));
  result["threshold"] = to_numpy(std::move(threshold));
  return result;
}

/// Add rounds of boosting to the scores of the rows; returns the trees and the new scores.
std::pair<nb::dict, Output<std::int64_t, 1>> boost(const Input<std::uint8_t, 2>& bin,
                                                   const Ints& n_bins,
                                                   const Input<std::int32_t, 2>& z, const Longs& y,
                                                   const Longs& score, const std::string& loss,
                                                   nb::handle plan_object) {
  const base::BinnedTable table = read_bins(bin, n_bins);
  demand(z.shape(0) == bin.shape(0) && z.shape(1) == bin.shape(1), "z must have the shape of bin");
  const base::GridTable grid{table.n_rows, table.n_columns, z.data()};
  check_length(y.size(), bin.shape(0), "y");
  check_length(score.size(), bin.shape(0), "score");
  demand(loss == "squared_error" || loss == "log_loss", "loss is unknown");
  grow::BoostingPlan plan;
  read_field(plan_object, "n_rounds", plan.n_rounds);
  read_field(plan_object, "learning_rate", plan.learning_rate);
  read_field(plan_object, "l2_regularization", plan.l2_regularization);
  read_field(plan_object, "least_hessian", plan.least_hessian);
  read_field(plan_object, "max_leaf_nodes", plan.size.max_leaf_nodes);
  read_field(plan_object, "max_depth", plan.size.max_depth);
  read_field(plan_object, "seed", plan.seed);
  read_field(plan_object, "n_hyperplanes", plan.hyperplanes.n_hyperplanes);
  read_field(plan_object, "n_drawn", plan.hyperplanes.n_drawn);
  read_field(plan_object, "shrinkage", plan.hyperplanes.shrinkage);
  std::vector<std::int64_t> next(score.data(), score.data() + score.size());
  std::vector<grow::BoostedTree> trees;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    run_tasks(
        1, 1,
        [&](std::int64_t, const StopFlag& stop) {
          if (loss == "squared_error") {
            grow::SquaredLoss squared(y.data(), table.n_rows);
            trees = grow::boost(table, grid, squared, next.data(), plan, stop);
          } else {
            grow::LogisticLoss logistic(y.data(), table.n_rows);
            trees = grow::boost(table, grid, logistic, next.data(), plan, stop);
          }
        },
        poll);
  }
  return {to_dict(trees), to_numpy(std::move(next))};
}

}  // namespace

void bind_engine(nb::module_& m) {
  m.def("bin_table", &bin_table<double>, "X"_a.noconvert(), "n_threads"_a);
  m.def("bin_table", &bin_table<float>, "X"_a.noconvert(), "n_threads"_a);
  m.def("place_table", &place_table<double>, "X"_a.noconvert(), "n_threads"_a);
  m.def("place_table", &place_table<float>, "X"_a.noconvert(), "n_threads"_a);
  m.def("boost", &boost, "bin"_a.noconvert(), "n_bins"_a.noconvert(), "z"_a.noconvert(),
        "y"_a.noconvert(), "score"_a.noconvert(), "loss"_a, "plan"_a);
}

}  // namespace lhtree
