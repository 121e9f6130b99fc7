// The exact engine: learning and encoding columns, boosting, and walking down its trees.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/columns.hpp"
#include "ensemble_arrays.hpp"
#include "grow/boosting.hpp"
#include "grow/means.hpp"
#include "grow/quantiles.hpp"
#include "grow/softmax.hpp"
#include "predict/divide.hpp"
#include "predict/explain.hpp"
#include "read_constraints.hpp"
#include "read_rules.hpp"
#include "threads.hpp"

namespace lhtree {
namespace {

/// Columns as arrays, one entry each, and their thresholds one after the other.
nb::dict to_dict(const std::vector<base::Column>& columns) {
  std::vector<std::int32_t> n_codes, low, high, fill;
  std::vector<std::int16_t> power;
  std::vector<double> origin, threshold;
  std::vector<std::uint8_t> has_gaps;
  std::vector<std::int64_t> start{0};
  for (const base::Column& each : columns) {
    n_codes.push_back(each.n_codes);
    power.push_back(static_cast<std::int16_t>(each.grid.power));
    origin.push_back(each.grid.origin);
    low.push_back(each.grid.low);
    high.push_back(each.grid.high);
    fill.push_back(each.fill);
    has_gaps.push_back(each.has_gaps);
    threshold.insert(threshold.end(), each.threshold.begin(), each.threshold.end());
    start.push_back(static_cast<std::int64_t>(threshold.size()));
  }
  nb::dict result;
  result["n_codes"] = to_numpy(std::move(n_codes));
  result["power"] = to_numpy(std::move(power));
  result["origin"] = to_numpy(std::move(origin));
  result["low"] = to_numpy(std::move(low));
  result["high"] = to_numpy(std::move(high));
  result["fill"] = to_numpy(std::move(fill));
  result["has_gaps"] = to_numpy(std::move(has_gaps));
  result["threshold"] = to_numpy(std::move(threshold));
  result["threshold_start"] = to_numpy(std::move(start));
  return result;
}

std::vector<base::Column> read_columns(nb::handle object) {
  const auto n_codes = get_array<std::int32_t>(object, "n_codes");
  const auto power = get_array<std::int16_t>(object, "power");
  const auto origin = get_array<double>(object, "origin");
  const auto low = get_array<std::int32_t>(object, "low");
  const auto high = get_array<std::int32_t>(object, "high");
  const auto fill = get_array<std::int32_t>(object, "fill");
  const auto has_gaps = get_array<std::uint8_t>(object, "has_gaps");
  const auto threshold = get_array<double>(object, "threshold");
  const auto start = get_array<std::int64_t>(object, "threshold_start");
  const std::size_t n = n_codes.size();
  for (const std::size_t size :
       {power.size(), origin.size(), low.size(), high.size(), fill.size(), has_gaps.size()})
    demand(size == n, "the arrays of columns must have one entry per column");
  check_starts(start, n, threshold.size(), "threshold_start must rise to the last threshold");
  std::vector<base::Column> columns(n);
  for (std::size_t j = 0; j < n; ++j) {
    base::Column& each = columns[j];
    each.n_codes = n_codes(j);
    each.grid = {power(j), origin(j), low(j), high(j)};
    each.fill = fill(j);
    each.has_gaps = has_gaps(j) != 0;
    each.threshold.assign(threshold.data() + start(j), threshold.data() + start(j + 1));
    demand(0 <= each.n_codes && each.n_codes <= base::most_bins &&
               each.threshold.size() < base::most_bins,
           "a column must have at most 255 bins");
    demand(-1200 < power(j) && power(j) < 1200, "the power of a grid is out of range");
    demand(std::isfinite(origin(j)), "the origin of a column is not an integer");
    demand(low(j) <= high(j), "low and high of a column are exchanged");
    demand(low(j) > base::gap, "the low of a column is that of a missing value");
  }
  return columns;
}

using Encoded = std::pair<Output<std::uint8_t, 2>, std::optional<Output<std::int32_t, 2>>>;

Encoded to_arrays(base::EncodedRows rows, std::size_t n_rows, std::size_t n_columns, bool wants_z) {
  std::optional<Output<std::int32_t, 2>> z;
  if (wants_z) z = to_numpy<std::int32_t, 2>(std::move(rows.z), {n_rows, n_columns});
  return {to_numpy<std::uint8_t, 2>(std::move(rows.bin), {n_rows, n_columns}), std::move(z)};
}

using Flags = Input<std::uint8_t, 1>;

/// A table by rows or by columns, where it lies.
template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

/// A field of a Python object that is such a table.
template <class T>
Table<T> get_table(nb::handle object, const char* name) {
  const nb::object field = object.attr(name);
  Table<T> table;
  if (!nb::try_cast(field, table, false))
    throw std::invalid_argument(std::string("the array '") + name +
                                "' has the wrong type or number of dimensions");
  return table;
}

template <class T>
base::Values<T> to_values(const Table<T>& X) {
  return {X.data(), static_cast<std::int64_t>(X.shape(0)), static_cast<std::int64_t>(X.shape(1)),
          X.stride(0), X.stride(1)};
}

template <class Array>
auto data_of(const std::optional<Array>& array) {
  return array ? array->data() : nullptr;
}

/// Refuse weights with which sums could overflow.
void check_weight(const std::optional<Longs>& weight, std::size_t n_rows) {
  if (!weight) return;
  check_length(weight->size(), n_rows, "weight");
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n_rows; ++i) {
    demand((*weight)(i) > 0, "weights must be positive");
    sum += static_cast<std::uint64_t>((*weight)(i));
    demand(sum >> stats::weight_bits == 0, "the sum of the weights must be below 2**40");
  }
}

void check_held_out(const std::optional<Flags>& held_out, std::size_t n_rows) {
  if (!held_out) return;
  check_length(held_out->size(), n_rows, "held_out");
  demand(std::count(held_out->data(), held_out->data() + n_rows, 0) > 0,
         "there must be rows to train on");
}

void check_max_bins(int max_bins) {
  demand(2 <= max_bins && max_bins <= base::most_bins, "max_bins must lie from 2 to 255");
}

/// Learn the columns of a table of rows of positive weight, but for those held out, and encode it.
template <class T>
std::pair<nb::dict, Encoded> learn_columns(const Table<T>& X, const std::optional<Longs>& weight,
                                           const std::optional<Flags>& held_out,
                                           const Ints& n_codes, int max_bins, bool wants_z,
                                           std::int64_t n_threads) {
  demand(X.shape(0) > 0 && X.shape(1) > 0, "X must not be empty");
  check_max_bins(max_bins);
  demand(n_codes.size() == X.shape(1), "n_codes must have one entry per column");
  check_weight(weight, X.shape(0));
  check_held_out(held_out, X.shape(0));
  std::vector<base::Column> columns(n_codes.size());
  for (std::size_t j = 0; j < n_codes.size(); ++j) {
    demand(0 <= n_codes(j) && n_codes(j) <= base::most_bins, "n_codes must lie from 0 to 255");
    columns[j].n_codes = n_codes(j);
  }
  base::EncodedRows rows;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    base::TableEncoder<T> encoder(to_values(X), wants_z);
    encoder.learn(columns, data_of(weight), data_of(held_out), max_bins, n_threads, poll);
    rows = encoder.take();
  }
  return {to_dict(columns), to_arrays(std::move(rows), X.shape(0), X.shape(1), wants_z)};
}

/// Encode rows of a table whose columns are known.
template <class T>
Encoded encode_rows(const Table<T>& X, nb::handle columns_object, bool wants_z,
                    std::int64_t n_threads) {
  const std::vector<base::Column> columns = read_columns(columns_object);
  demand(columns.size() == X.shape(1), "X must have the columns of the training rows");
  base::EncodedRows rows;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    base::TableEncoder<T> encoder(to_values(X), wants_z);
    encoder.encode(columns, n_threads, poll);
    rows = encoder.take();
  }
  return to_arrays(std::move(rows), X.shape(0), X.shape(1), wants_z);
}

/// A sparse table whose indices were checked.
base::Entries read_entries(const Longs& start, const Ints& column, const Doubles& value,
                           std::int64_t n_columns) {
  demand(start.size() > 0 && n_columns > 0, "X must not be empty");
  check_starts(start, start.size() - 1, column.size(), "start must rise to the last entry");
  demand(value.size() == column.size(), "value must have one entry per entry of column");
  for (std::size_t k = 0; k < column.size(); ++k)
    demand(0 <= column(k) && column(k) < n_columns, "a column is out of range");
  return {static_cast<std::int64_t>(start.size()) - 1, n_columns, start.data(), column.data(),
          value.data()};
}

using EncodedEntries = std::pair<Output<std::uint8_t, 1>, std::optional<Output<std::int32_t, 1>>>;

EncodedEntries encode(const base::Entries& entries, const std::vector<base::Column>& columns,
                      bool wants_z, std::int64_t n_threads) {
  base::EncodedRows rows;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    rows = base::encode_entries(entries, columns, wants_z, n_threads, poll);
  }
  std::optional<Output<std::int32_t, 1>> z;
  if (wants_z) z = to_numpy(std::move(rows.z));
  return {to_numpy(std::move(rows.bin)), std::move(z)};
}

/// Learn the columns of a sparse table, and encode its entries.
std::pair<nb::dict, EncodedEntries> learn_sparse(const Longs& start, const Ints& column,
                                                 const Doubles& value, std::int64_t n_columns,
                                                 const std::optional<Longs>& weight,
                                                 const std::optional<Flags>& held_out, int max_bins,
                                                 bool wants_z, std::int64_t n_threads) {
  const base::Entries entries = read_entries(start, column, value, n_columns);
  demand(entries.n_rows > 0, "X must not be empty");
  check_max_bins(max_bins);
  check_weight(weight, start.size() - 1);
  check_held_out(held_out, start.size() - 1);
  std::vector<base::Column> columns;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    columns =
        base::learn_columns(entries, data_of(weight), data_of(held_out), max_bins, n_threads, poll);
  }
  return {to_dict(columns), encode(entries, columns, wants_z, n_threads)};
}

/// Encode the entries of a sparse table whose columns are known.
EncodedEntries encode_sparse(const Longs& start, const Ints& column, const Doubles& value,
                             nb::handle columns_object, bool wants_z, std::int64_t n_threads) {
  const std::vector<base::Column> columns = read_columns(columns_object);
  const auto n_columns = static_cast<std::int64_t>(columns.size());
  return encode(read_entries(start, column, value, n_columns), columns, wants_z, n_threads);
}

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
  std::optional<Table<double>> doubles;  // raw rows, read where there is no z
  std::optional<Table<float>> floats;
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

  /// Refuse targets that are not numbers of outputs.
  void check_classes() const {
    for (std::size_t i = 0; i < y.size(); ++i)
      demand(0 <= y(i) && y(i) < n_outputs, "y must have numbers of classes");
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
  void read_score(const Table<std::int64_t>& given) {
    score.resize(given.size());
    const std::size_t n = given.shape(1);
    for (std::size_t i = 0; i < given.shape(0); ++i)
      for (std::size_t k = 0; k < n; ++k)
        score[i * n + k] = given.data()[static_cast<std::int64_t>(i) * given.stride(0) +
                                        static_cast<std::int64_t>(k) * given.stride(1)];
  }

  template <class T>
  void read_raw(nb::handle object, const std::vector<base::Column>& columns,
                std::optional<Table<T>>& table) {
    Table<T> found;
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

/// Check an ensemble, and return what walks down its trees need beside it.
nb::tuple prepare_ensemble(nb::handle ensemble, nb::handle columns_object) {
  const EnsembleArrays arrays(ensemble);
  const std::vector<base::Column> columns = read_columns(columns_object);
  arrays.check(columns);
  predict::Prepared prepared = predict::prepare(arrays.view(), columns);
  const std::size_t n = prepared.steps.size();
  std::vector<std::uint64_t> words(2 * n);
  static_assert(sizeof(predict::Step) == 2 * sizeof(std::uint64_t));
  std::memcpy(words.data(), prepared.steps.data(), n * sizeof(predict::Step));
  return nb::make_tuple(
      to_numpy<std::uint64_t, 2>(std::move(words), {n, 2}), to_numpy(std::move(prepared.used)),
      to_numpy(std::move(prepared.term_position)), to_numpy(std::move(prepared.singles)));
}

/// Call run(view, columns, begin, end) for blocks of all rows; the ensemble was prepared.
template <class T, class Run>
void run_blocks(const Input<T, 2>& X, nb::handle ensemble, nb::handle columns_object,
                nb::handle prepared, std::int64_t n_threads, const Run& run) {
  const EnsembleArrays arrays(ensemble);
  const std::vector<base::Column> columns = read_columns(columns_object);
  const auto steps = nb::cast<Input<std::uint64_t, 2>>(prepared[0]);
  const auto used = nb::cast<Ints>(prepared[1]);
  const auto position = nb::cast<Ints>(prepared[2]), singles = nb::cast<Ints>(prepared[3]);
  demand(X.shape(1) == columns.size(), "X must have the columns of the training rows");
  demand(steps.shape(0) == arrays.left.size() && position.size() == arrays.feature.size(),
         "the ensemble must have been prepared");
  const Poll poll = make_poll(nb::none());
  nb::gil_scoped_release unlocked;
  const predict::PreparedView view{arrays.view(),
                                   reinterpret_cast<const predict::Step*>(steps.data()),
                                   used.data(),
                                   static_cast<std::int64_t>(used.size()),
                                   position.data(),
                                   singles.data(),
                                   static_cast<std::int64_t>(singles.size())};
  const auto n = static_cast<std::int64_t>(X.shape(0));
  constexpr std::int64_t block = 1024;
  if (n <= block) return run(view, columns, 0, n);
  run_tasks((n + block - 1) / block, n_threads,
            [&](std::int64_t k, const StopFlag&) {
              run(view, columns, k * block, std::min(n, (k + 1) * block));
            },
            poll);
}

/// Call visit(row, tree, node, leaf) for the leaves of all rows.
template <class T, class Visit>
void walk_rows(const Input<T, 2>& X, nb::handle ensemble, nb::handle columns, nb::handle prepared,
               std::int64_t n_threads, const Visit& visit) {
  constexpr std::int64_t few = 16;  // rows that walk one by one
  run_blocks(X, ensemble, columns, prepared, n_threads,
             [&](const predict::PreparedView& view, const std::vector<base::Column>& known,
                 std::int64_t begin, std::int64_t end) {
               if (end - begin <= few)
                 predict::Walker<T>(view, known).run(X.data(), begin, end, visit);
               else
                 predict::Divider<T>(view, known).run(X.data(), begin, end, visit);
             });
}

/// Sums of what the leaves of each row add to each output.
template <class T>
Output<std::int64_t, 2> sum_trees(const Input<T, 2>& X, nb::handle ensemble, nb::handle columns,
                                  nb::handle prepared, std::int64_t n_threads) {
  const auto value = get_array<std::int32_t, 2>(ensemble, "value");
  const auto start = get_array<std::int64_t>(ensemble, "tree_start");
  const auto n_nodes = static_cast<std::size_t>(start(start.size() - 1));
  demand(2 * value.shape(0) == n_nodes + start.size() - 1, "value must have one row per leaf");
  const std::size_t n_outputs = value.shape(1);
  std::vector<std::int64_t> score(X.shape(0) * n_outputs, 0);
  walk_rows(X, ensemble, columns, prepared, n_threads,
            [&](std::int64_t row, std::int64_t, std::int64_t, std::int64_t leaf) {
              const std::int32_t* added = value.data() + leaf * n_outputs;
              std::int64_t* sum = score.data() + row * n_outputs;
              for (std::size_t k = 0; k < n_outputs; ++k) sum[k] += added[k];
            });
  return to_numpy<std::int64_t, 2>(std::move(score), {X.shape(0), n_outputs});
}

/// The leaf of each row in each tree.
template <class T>
Output<std::int64_t, 2> find_leaves(const Input<T, 2>& X, nb::handle ensemble, nb::handle columns,
                                    nb::handle prepared, std::int64_t n_threads) {
  const std::size_t n_trees = get_array<std::int64_t>(ensemble, "tree_start").size() - 1;
  std::vector<std::int64_t> leaf(X.shape(0) * n_trees);
  walk_rows(X, ensemble, columns, prepared, n_threads,
            [&](std::int64_t row, std::int64_t tree, std::int64_t node, std::int64_t) {
              leaf[row * n_trees + tree] = node;
            });
  return to_numpy<std::int64_t, 2>(std::move(leaf), {X.shape(0), n_trees});
}

/// What each column adds to each score of each row, as integers.
template <class T>
Output<std::int64_t, 3> divide_scores(const Input<T, 2>& X, nb::handle ensemble, nb::handle columns,
                                      nb::handle prepared, const Input<std::int64_t, 2>& node_value,
                                      std::int64_t n_threads) {
  demand(node_value.shape(0) == get_array<std::int32_t>(ensemble, "left").size() &&
             node_value.shape(1) > 0,
         "node_value must have one row per node");
  const std::size_t n_outputs = node_value.shape(1), n_columns = X.shape(1);
  std::vector<std::int64_t> sum(X.shape(0) * n_outputs * n_columns, 0);
  run_blocks(X, ensemble, columns, prepared, n_threads,
             [&](const predict::PreparedView& view, const std::vector<base::Column>& known,
                 std::int64_t begin, std::int64_t end) {
               const predict::ChangeDivider divider(view, node_value.data(),
                                                    static_cast<std::int64_t>(n_outputs),
                                                    static_cast<std::int64_t>(n_columns));
               predict::Walker<T>(view, known)
                   .run(
                       X.data(), begin, end, [](auto...) {},
                       [&](std::int64_t row, std::int64_t, std::int64_t split, std::int64_t child,
                           const std::int32_t* z) {
                         divider.divide(split, child, z, sum.data() + row * n_outputs * n_columns);
                       });
             });
  return to_numpy<std::int64_t, 3>(std::move(sum), {X.shape(0), n_outputs, n_columns});
}

}  // namespace

void bind_exact(nb::module_& m) {
  m.def("learn_columns", &learn_columns<double>, "X"_a.noconvert(), "weight"_a.none(),
        "held_out"_a.none(), "n_codes"_a, "max_bins"_a, "wants_z"_a, "n_threads"_a);
  m.def("learn_columns", &learn_columns<float>, "X"_a.noconvert(), "weight"_a.none(),
        "held_out"_a.none(), "n_codes"_a, "max_bins"_a, "wants_z"_a, "n_threads"_a);
  m.def("encode_rows", &encode_rows<double>, "X"_a.noconvert(), "columns"_a, "wants_z"_a,
        "n_threads"_a);
  m.def("encode_rows", &encode_rows<float>, "X"_a.noconvert(), "columns"_a, "wants_z"_a,
        "n_threads"_a);
  m.def("learn_sparse", &learn_sparse, "start"_a.noconvert(), "column"_a.noconvert(),
        "value"_a.noconvert(), "n_columns"_a, "weight"_a.none(), "held_out"_a.none(), "max_bins"_a,
        "wants_z"_a, "n_threads"_a);
  m.def("encode_sparse", &encode_sparse, "start"_a.noconvert(), "column"_a.noconvert(),
        "value"_a.noconvert(), "columns"_a, "wants_z"_a, "n_threads"_a);
  m.def("compute_log", [](double x) { return base::log(x); }, "x"_a);
  m.def("compute_exp", [](double x) { return base::exp(x); }, "x"_a);
  m.def("prepare_ensemble", &prepare_ensemble, "ensemble"_a, "columns"_a);
  m.def("sum_trees", &sum_trees<double>, "X"_a.noconvert(), "ensemble"_a, "columns"_a, "prepared"_a,
        "n_threads"_a);
  m.def("sum_trees", &sum_trees<float>, "X"_a.noconvert(), "ensemble"_a, "columns"_a, "prepared"_a,
        "n_threads"_a);
  m.def("find_leaves", &find_leaves<double>, "X"_a.noconvert(), "ensemble"_a, "columns"_a,
        "prepared"_a, "n_threads"_a);
  m.def("find_leaves", &find_leaves<float>, "X"_a.noconvert(), "ensemble"_a, "columns"_a,
        "prepared"_a, "n_threads"_a);
  m.def("divide_scores", &divide_scores<double>, "X"_a.noconvert(), "ensemble"_a, "columns"_a,
        "prepared"_a, "node_value"_a, "n_threads"_a);
  m.def("divide_scores", &divide_scores<float>, "X"_a.noconvert(), "ensemble"_a, "columns"_a,
        "prepared"_a, "node_value"_a, "n_threads"_a);
  m.def("boost", &boost, "columns"_a, "training"_a, "validation"_a, "loss"_a, "plan"_a,
        "n_threads"_a);
}

}  // namespace lhtree
