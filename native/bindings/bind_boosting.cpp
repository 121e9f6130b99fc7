// Rounds of boosting.
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/columns.hpp"
#include "grow/boosting.hpp"
#include "grow/poisson_gamma.hpp"
#include "grow/quantiles.hpp"
#include "grow/softmax.hpp"
#include "read_columns.hpp"
#include "read_constraints.hpp"
#include "threads.hpp"

namespace lhtree {
namespace {

base::Layout make_layout(const std::vector<base::Column>& columns) {
  std::vector<base::ColumnInfo> info;
  for (const base::Column& each : columns) {
    const base::ColumnEncoder encoder(each);
    info.push_back({each.n_bins(), each.is_category(), each.has_gaps, each.fill, encoder.bin(0.0),
                    encoder.place(0.0)});
  }
  return base::Layout(std::move(info));
}

/// Encoded rows, dense or sparse, their targets, weights and scores; the scores are changed.
struct RowArrays {
  std::optional<Input<std::uint8_t, 2>> dense_bin;
  std::optional<Input<std::int32_t, 2>> dense_z;
  std::optional<AnyOrder<double>> doubles;  // raw rows, read where there is no z
  std::optional<AnyOrder<float>> floats;
  std::optional<base::RawRows> raw;
  std::optional<Input<std::uint8_t, 1>> entry_bin;
  std::optional<Ints> entry_z, entry_column;
  std::optional<Longs> entry_start, weight;
  std::optional<Flags> held_out;
  Ints y;
  std::int64_t n_outputs = 1;
  PageVector<std::int64_t> score;

  static constexpr std::int64_t most_outputs = 1 << 16;

  RowArrays(nb::handle object, const std::vector<base::Column>& columns, const base::Layout& layout,
            bool needs_z) {
    y = get_array<std::int32_t>(object, "y");
    if (!object.attr("weight").is_none()) weight = get_array<std::int64_t>(object, "weight");
    read_score(get_table<std::int64_t>(object, "score"));
    const std::size_t n = y.size();
    n_outputs = static_cast<std::int64_t>(nb::cast<std::int64_t>(object.attr("n_outputs")));
    demand(n_outputs > 0 && n_outputs <= most_outputs, "n_outputs is out of range");
    check_length(score.size(), n * n_outputs, "score");
    check_weight(weight, n);
    if (!object.attr("held_out").is_none()) held_out = get_array<std::uint8_t>(object, "held_out");
    check_held_out(held_out, n);
    if (object.attr("start").is_none())
      read_dense(object, columns, layout, needs_z);
    else
      read_sparse(object, layout, needs_z);
  }

  bool is_sparse() const { return entry_start.has_value(); }
  std::int64_t n_rows() const { return static_cast<std::int64_t>(y.size()); }
  grow::Rows rows() {
    return {n_rows(), n_outputs, y.data(), data_of(weight), data_of(held_out), score.data()};
  }

  /// Refuse targets that are not the index of an output.
  void check_classes() const {
    for (std::size_t i = 0; i < y.size(); ++i)
      demand(0 <= y(i) && y(i) < n_outputs, "y must have indices of classes");
  }

  void check_positive(std::int32_t least) const {
    for (std::size_t i = 0; i < y.size(); ++i) demand(y(i) >= least, "a target is too small");
  }

  template <class Table>
  Table table(const base::Layout& layout) const {
    if constexpr (std::is_same_v<Table, base::DenseTable>)
      return {layout, n_rows(), dense_bin->data(), dense_z ? dense_z->data() : nullptr,
              raw ? &*raw : nullptr};
    else
      return {layout,
              n_rows(),
              entry_start->data(),
              entry_column->data(),
              entry_bin->data(),
              entry_z ? entry_z->data() : nullptr};
  }

 private:
  /// The scores before the first round; those of all rows may be the same memory.
  void read_score(const AnyOrder<std::int64_t>& given) {
    score.resize(given.size());
    const std::size_t n = given.shape(1);
    for (std::size_t i = 0; i < given.shape(0); ++i)
      for (std::size_t k = 0; k < n; ++k)
        score[i * n + k] = given.data()[static_cast<std::int64_t>(i) * given.stride(0) +
                                        static_cast<std::int64_t>(k) * given.stride(1)];
  }

  template <class T>
  void read_raw(nb::handle object, const std::vector<base::Column>& columns,
                std::optional<AnyOrder<T>>& table) {
    AnyOrder<T> found;
    if (!nb::try_cast(object, found, false)) return;
    demand(found.shape(0) == y.size() && found.shape(1) == columns.size(),
           "raw must have the shape of bin");
    table = std::move(found);
    raw.emplace(to_values(*table), columns);
  }

  void read_dense(nb::handle object, const std::vector<base::Column>& columns,
                  const base::Layout& layout, bool needs_z) {
    dense_bin = get_array<std::uint8_t, 2>(object, "bin");
    check_length(dense_bin->shape(0), y.size(), "bin");
    const std::size_t d = dense_bin->shape(1);
    demand(static_cast<std::int64_t>(d) == layout.n_columns(), "bin must have all columns");
    for (std::size_t i = 0; i < y.size(); ++i)
      for (std::size_t j = 0; j < d; ++j)
        demand(dense_bin->data()[i * d + j] <= layout.column[j].n_bins, "a bin is out of range");
    if (!needs_z) return;
    if (object.attr("z").is_none()) {
      const nb::object rows = object.attr("raw");
      read_raw(rows, columns, doubles);
      if (!raw) read_raw(rows, columns, floats);
      demand(raw.has_value(), "raw must be a table of doubles or floats where there is no z");
      return;
    }
    dense_z = get_array<std::int32_t, 2>(object, "z");
    demand(dense_z->shape(0) == y.size() && dense_z->shape(1) == d, "z must have the shape of bin");
  }

  void read_sparse(nb::handle object, const base::Layout& layout, bool needs_z) {
    entry_start = get_array<std::int64_t>(object, "start");
    entry_column = get_array<std::int32_t>(object, "column");
    entry_bin = get_array<std::uint8_t>(object, "bin");
    check_starts(*entry_start, y.size(), entry_column->size(), "start must rise to the last entry");
    demand(entry_bin->size() == entry_column->size(), "bin must have one entry per entry");
    for (std::size_t k = 0; k < entry_column->size(); ++k) {
      const std::int32_t j = (*entry_column)(k);
      demand(0 <= j && j < layout.n_columns(), "a column is out of range");
      demand((*entry_bin)(k) <= layout.column[j].n_bins, "a bin is out of range");
    }
    if (!needs_z) return;
    entry_z = get_array<std::int32_t>(object, "z");
    demand(entry_z->size() == entry_column->size(), "z must have one entry per entry");
  }
};

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

nb::dict to_dict(model::Ensemble trees, std::size_t n_outputs) {
  nb::dict result;
  const std::size_t n_code_sets = trees.codes.size() / 4, n_leaves = trees.value.size() / n_outputs;
  result["tree_start"] = to_numpy(std::move(trees.tree_start));
  result["left"] = to_numpy(std::move(trees.left));
  result["column"] = to_numpy(std::move(trees.column));
  result["missing_left"] = to_numpy(std::move(trees.missing_left));
  result["value"] = to_numpy<std::int32_t, 2>(std::move(trees.value), {n_leaves, n_outputs});
  result["weight"] = to_numpy(std::move(trees.weight));
  result["gain"] = to_numpy(std::move(trees.gain));
  result["threshold"] = to_numpy(std::move(trees.threshold));
  result["codes"] = to_numpy<std::uint64_t, 2>(std::move(trees.codes), {n_code_sets, 4});
  result["term_start"] = to_numpy(std::move(trees.term_start));
  result["feature"] = to_numpy(std::move(trees.feature));
  result["coefficient"] = to_numpy(std::move(trees.coefficient));
  result["fill"] = to_numpy(std::move(trees.fill));
  result["cut"] = to_numpy(std::move(trees.cut));
  return result;
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
        base::Team team(n_threads);
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
    if (has_classes && rows->n_outputs > 1) rows->check_classes();
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
