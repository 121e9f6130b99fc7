// The part of a Python `Plan` that says how a node is split.
#pragma once

#include "numpy.hpp"
#include "old/rules.hpp"

namespace lhtree {

inline Rules read_rules(nb::handle plan) {
  Rules rules;
  rules.contrast = static_cast<Contrast>(nb::cast<int>(plan.attr("contrast")));
  rules.cut = static_cast<Cut>(nb::cast<int>(plan.attr("criterion")));
  read_field(plan, "axis_splits", rules.axes);
  read_field(plan, "n_hyperplanes", rules.n_planes);
  read_field(plan, "alpha", rules.alpha);
  read_field(plan, "gamma", rules.gamma);
  read_field(plan, "min_samples_split", rules.min_samples_split);
  read_field(plan, "max_depth", rules.max_depth);
  read_field(plan, "min_weight_fraction_leaf", rules.min_weight_fraction_leaf);
  read_field(plan, "min_samples_leaf", rules.min_samples_leaf);
  read_field(plan, "max_leaf_nodes", rules.max_leaf_nodes);
  read_field(plan, "ccp_alpha", rules.ccp_alpha);
  read_field(plan, "max_features", rules.n_columns);
  read_field(plan, "max_features_per_tree", rules.n_columns_per_tree);
  return rules;
}

}  // namespace lhtree
