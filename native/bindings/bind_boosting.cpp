// Rounds of boosting.
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "grow/boosting.hpp"
#include "grow/poisson_gamma.hpp"
#include "grow/quantiles.hpp"
#include "grow/softmax.hpp"
#include "read_constraints.hpp"
#include "threads.hpp"
#include "tree_arrays.hpp"

namespace lhtree {
namespace {

grow::BoostingPlan read_plan(nb::handle object) {
  grow::BoostingPlan plan;
  read_field(object, "first_round", plan.first_round);
  read_field(object, "n_rounds", plan.n_rounds);
  read_field(object, "patience", plan.patience);
  read_field(object, "tolerance", plan.tolerance);
  read_field(object, "learning_rate", plan.learning_rate);
  read_field(object, "rate_growth", plan.rate_growth);
  read_field(object, "most_rate", plan.most_rate);
  read_field(object, "subsample", plan.subsample);
  read_field(object, "l2_regularization", plan.l2_regularization);
  read_field(object, "min_hessian", plan.min_hessian);
  read_field(object, "min_weight", plan.min_weight);
  read_field(object, "unit_weight", plan.unit_weight);
  read_field(object, "min_gain", plan.min_gain);
  read_field(object, "hyperplane_interval", plan.hyperplane_interval);
  plan.hyperplanes.unit_weight = plan.unit_weight;
  read_field(object, "max_leaf_nodes", plan.size.max_leaf_nodes);
  read_field(object, "max_depth", plan.size.max_depth);
  read_field(object, "max_features", plan.max_features);
  read_field(object, "seed", plan.seed);
  read_field(object, "n_hyperplanes", plan.hyperplanes.n_hyperplanes);
  read_field(object, "max_terms", plan.hyperplanes.max_terms);
  read_field(object, "shrinkage", plan.hyperplanes.shrinkage);
  read_field(object, "weight_shift", plan.hyperplanes.weight_shift);
  for (const nb::handle level : object.attr("levels"))
    plan.levels.push_back(nb::cast<double>(level));
  demand(plan.hyperplanes.max_terms <= split::most_terms, "max_terms must be at most 128");
  demand(plan.subsample > 0.0, "subsample must be above 0");
  demand(plan.max_features >= 0, "max_features must be at least 0");
  return plan;
}

template <class Loss>
Loss make_loss(std::int64_t n_outputs, const grow::BoostingPlan& plan) {
  if constexpr (std::is_constructible_v<Loss, std::vector<double>>)
    return Loss(plan.levels);
  else if constexpr (std::is_constructible_v<Loss, std::int64_t>)
    return Loss(n_outputs);
  else
    return Loss{};
}

template <class Loss, class Row, class Table>
grow::Boosted boost_rows(const std::vector<base::Column>& columns, const base::Layout& layout,
                         RowArrays& training, RowArrays& validation, const grow::BoostingPlan& plan,
                         std::int64_t n_threads, const Poll& poll) {
  grow::Boosted result;
  run_tasks(
      1, 1,
      [&](std::int64_t, const StopFlag& stop) {
        base::Team team(n_threads, stop);
        const Table table = training.table<Table>(layout), other = validation.table<Table>(layout);
        grow::Booster<Loss, Row, Table> booster(make_loss<Loss>(training.n_outputs, plan), columns,
                                                table, training.rows(), other, validation.rows(),
                                                plan, team, stop);
        result = booster.run();
      },
      poll);
  return result;
}

/// The function for a loss, a kind of row and a kind of table.
template <class Loss>
auto choose_booster(bool is_weighted, bool is_sparse) {
  using stats::PackedRow, stats::WeightedRow, base::DenseTable, base::SparseTable;
  if (is_sparse)
    return is_weighted ? &boost_rows<Loss, WeightedRow, SparseTable>
                       : &boost_rows<Loss, PackedRow, SparseTable>;
  return is_weighted ? &boost_rows<Loss, WeightedRow, DenseTable>
                     : &boost_rows<Loss, PackedRow, DenseTable>;
}

/// Refuse targets, outputs and levels that a loss does not have.
void check_loss(const std::string& loss, const grow::BoostingPlan& plan, const RowArrays& training,
                const RowArrays& validation) {
  const bool has_classes = loss == "log_loss", has_levels = loss == "quantile";
  const bool has_log_link = loss == "poisson" || loss == "gamma";
  demand(loss == "squared_error" || has_classes || has_levels || has_log_link, "loss is unknown");
  demand(training.n_outputs == validation.n_outputs, "all rows must have the same outputs");
  demand(training.n_outputs == 1 || has_classes || has_levels, "the loss has one output");
  for (const RowArrays* rows : {&training, &validation}) {
    if (has_classes && rows->n_outputs > 1) rows->check_classes(rows->n_outputs);
    if (has_log_link) rows->check_positive(loss == "gamma" ? 1 : 0);
  }
  if (!has_levels) return;
  demand(static_cast<std::int64_t>(plan.levels.size()) == training.n_outputs,
         "there must be a level for each output");
  demand(plan.levels.size() <= 255, "there must be at most 255 levels");
  for (const double level : plan.levels)
    demand(level > 0.0 && level < 1.0, "levels must be between 0 and 1");
}

/// Add rounds of boosting. Returns the trees, the scores of the rows after them, and the losses
/// before and after each round.
nb::dict boost(nb::handle columns_object, nb::handle training_object, nb::handle validation_object,
               const std::string& loss, nb::handle plan_object, std::int64_t n_threads) {
  const std::vector<base::Column> columns = read_columns(columns_object);
  const base::Layout layout = make_layout(columns);
  grow::BoostingPlan plan = read_plan(plan_object);
  const bool needs_z = plan.hyperplanes.n_hyperplanes > 0;
  RowArrays training(training_object, columns, layout, needs_z),
      validation(validation_object, columns, layout, needs_z);
  demand(!training.score.empty(), "there must be rows");
  demand(training.is_sparse() == validation.is_sparse(), "all rows must be dense, or all sparse");
  check_loss(loss, plan, training, validation);
  plan.constraints = read_constraints(plan_object, layout, training.n_outputs);
  // Where all hessians are one, they count rows.
  const bool is_counted = loss == "squared_error" || loss == "quantile";
  const bool is_weighted = training.weight || (plan.min_weight > 1 && !is_counted);
  grow::Boosted boosted;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    const auto run =
        loss == "squared_error"
            ? choose_booster<grow::SquaredLoss>(is_weighted, training.is_sparse())
        : loss == "quantile" ? choose_booster<grow::QuantileLoss>(is_weighted, training.is_sparse())
        : loss == "poisson"  ? choose_booster<grow::PoissonLoss>(is_weighted, training.is_sparse())
        : loss == "gamma"    ? choose_booster<grow::GammaLoss>(is_weighted, training.is_sparse())
        : training.n_outputs > 1
            ? choose_booster<grow::SoftmaxLoss>(is_weighted, training.is_sparse())
            : choose_booster<grow::LogisticLoss>(is_weighted, training.is_sparse());
    boosted = run(columns, layout, training, validation, plan, n_threads, poll);
  }
  nb::dict result;
  const auto n_outputs = static_cast<std::size_t>(training.n_outputs);
  result["trees"] = to_dict(std::move(boosted.trees), n_outputs);
  result["score"] =
      to_numpy<std::int64_t, 2>(std::move(training.score), {training.y.size(), n_outputs});
  result["validation_score"] =
      to_numpy<std::int64_t, 2>(std::move(validation.score), {validation.y.size(), n_outputs});
  result["training_loss"] = to_numpy(std::move(boosted.training_loss));
  result["validation_loss"] = to_numpy(std::move(boosted.validation_loss));
  return result;
}

}  // namespace

void bind_boosting(nb::module_& m) {
  m.def("boost", &boost, "columns"_a, "training"_a, "validation"_a, "loss"_a, "plan"_a,
        "n_threads"_a);
}

}  // namespace lhtree
