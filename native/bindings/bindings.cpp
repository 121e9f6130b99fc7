// The core as Python sees it: what all of its parts share, and the module.
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "numpy.hpp"

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
  read("by_columns", result.by_columns);
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

void check_order(const Plan& plan, std::int64_t n_columns) {
  if (plan.by_columns == plan.rules.is_dense(n_columns))
    throw std::invalid_argument("by_columns does not fit the other fields of the plan");
}

Poll make_poll(nb::handle progress) {
  return [progress, last = std::int64_t{-1}](std::int64_t n_done) mutable {
    nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none() && n_done != last) progress(last = n_done);
  };
}

nb::dict to_dict(Forest forest) {
  nb::dict result;
  const std::size_t n_splits = forest.threshold.size();
  result["tree_start"] = to_numpy(std::move(forest.tree_start));
  result["target"] = to_numpy(std::move(forest.target));
  result["n_terms"] = to_numpy(std::move(forest.n_terms));
  if (forest.short_feature.empty())
    result["feature"] = to_numpy(std::move(forest.feature));
  else
    result["feature"] = to_numpy(std::move(forest.short_feature));
  result["weight"] = to_numpy(std::move(forest.weight));
  result["center"] = to_numpy(std::move(forest.center));
  result["deviation"] = to_numpy(std::move(forest.deviation));
  result["threshold"] = to_numpy(std::move(forest.threshold));
  result["norm"] = to_numpy(std::move(forest.norm));
  result["share"] = to_numpy(std::move(forest.share));
  result["n_samples"] = to_numpy(std::move(forest.n_samples));
  if (!forest.weight_sum.empty()) result["weight_sum"] = to_numpy(std::move(forest.weight_sum));
  result["rule"] = to_numpy(std::move(forest.rule));
  result["extremes"] = to_numpy<double, 2>(std::move(forest.extremes), {n_splits, 4});
  return result;
}

}  // namespace lhtree

NB_MODULE(_core, m) {
  m.doc() = "Native core of lhtree: free functions on arrays.";
  lhtree::bind_rows(m);
  lhtree::bind_fit(m);
  lhtree::bind_ask(m);
  lhtree::bind_part(m);
  lhtree::bind_decide(m);
}
