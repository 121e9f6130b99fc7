// Growing forests on the exact engine.
#include <cstdint>
#include <utility>
#include <vector>

#include "base/column_table.hpp"
#include "grow/forest.hpp"
#include "read_constraints.hpp"
#include "threads.hpp"
#include "tree_arrays.hpp"

namespace lhtree {
namespace {

grow::AveragedPlan read_plan(nb::handle object, const base::Layout& layout) {
  grow::AveragedPlan plan;
  read_field(object, "seed", plan.seed);
  read_field(object, "first_estimator", plan.first_estimator);
  read_field(object, "n_estimators", plan.n_estimators);
  read_field(object, "n_draws", plan.n_draws);
  read_field(object, "bootstrap", plan.bootstrap);
  read_field(object, "n_classes", plan.n_classes);
  read_field(object, "balance", plan.balance);
  read_field(object, "max_features", plan.max_features);
  read_field(object, "max_features_per_tree", plan.max_features_per_tree);
  read_field(object, "axis_splits", plan.axis_splits);
  read_field(object, "n_hyperplanes", plan.hyperplanes.n_hyperplanes);
  read_field(object, "hyperplane_interval", plan.hyperplane_interval);
  read_field(object, "shrinkage", plan.hyperplanes.shrinkage);
  read_field(object, "unit_weight", plan.hyperplanes.unit_weight);
  read_field(object, "weight_shift", plan.hyperplanes.weight_shift);
  read_field(object, "term_price", plan.term_price);
  read_field(object, "max_depth", plan.max_depth);
  read_field(object, "max_leaf_nodes", plan.max_leaf_nodes);
  read_field(object, "min_split_weight", plan.min_split_weight);
  read_field(object, "min_weight", plan.min_weight);
  read_field(object, "min_fraction", plan.min_fraction);
  read_field(object, "ccp_alpha", plan.ccp_alpha);
  plan.hyperplanes.max_terms = split::most_terms;
  plan.constraints = read_constraints(object, layout, 1);
  demand(plan.n_estimators >= 0 && plan.first_estimator >= 0, "n_estimators is out of range");
  demand(plan.max_features >= 0, "max_features must be at least 0");
  demand(plan.max_features_per_tree >= 0, "max_features_per_tree must be at least 0");
  demand(plan.n_classes >= 0, "n_classes must be at least 0");
  demand(plan.n_classes > 0 || !plan.balance, "numbers cannot be balanced");
  demand(plan.n_classes <= 2 || !plan.constraints.is_monotone(), "only one output can be monotone");
  demand(plan.min_fraction >= 0.0 && plan.ccp_alpha >= 0.0, "a limit is below 0");
  demand(plan.max_leaf_nodes >= 0, "max_leaf_nodes must be at least 0");
  demand(plan.hyperplane_interval > 0, "hyperplane_interval must be at least 1");
  demand(plan.hyperplanes.unit_weight > 0.0, "unit_weight must be above 0");
  return plan;
}

/// Grow trees, each from rows of its own; a leaf has the mean of its targets less the score, or the
/// share of the class of its tree.
nb::dict grow_averaged(nb::handle columns_object, nb::handle rows_object, nb::handle plan_object,
                       std::int64_t n_threads, nb::handle report) {
  const std::vector<base::Column> columns = read_columns(columns_object);
  const base::Layout layout = make_layout(columns);
  const grow::AveragedPlan plan = read_plan(plan_object, layout);
  RowArrays rows(rows_object, columns, layout, plan.hyperplanes.n_hyperplanes > 0);
  const auto n = static_cast<std::size_t>(rows.n_rows());
  demand(n > 0 && rows.n_outputs == 1 && !rows.held_out, "there must be rows with one score");
  if (plan.n_classes > 0) rows.check_classes(plan.n_classes);
  demand(plan.n_draws > 0 && (plan.bootstrap || plan.n_draws <= n), "n_draws is out of range");
  const bool is_weighted = rows.weight || plan.bootstrap || plan.balance;
  const Poll poll = make_poll(report), quiet = make_poll(nb::none());
  model::Ensemble trees;
  {
    nb::gil_scoped_release unlocked;
    const auto grow_rows = [&]<class Row>() {
      const auto grow_table = [&](const auto& table) {
        return grow::grow_forest<Row>(columns, table, rows.rows(), plan, n_threads, poll);
      };
      if (rows.is_sparse()) return grow_table(rows.table<base::SparseTable>(layout));
      const bool has_planes = plan.hyperplanes.n_hyperplanes > 0;
      return grow_table(base::ColumnTable(rows.table<base::DenseTable>(layout), has_planes,
                                          n_threads, quiet));
    };
    trees = is_weighted ? grow_rows.operator()<stats::WeightedRow>()
                        : grow_rows.operator()<stats::PackedRow>();
  }
  return to_dict(std::move(trees), 1);
}

}  // namespace

void bind_forest(nb::module_& m) {
  m.def("grow_averaged", &grow_averaged, "columns"_a, "rows"_a, "plan"_a, "n_threads"_a,
        "report"_a.none());
}

}  // namespace lhtree
