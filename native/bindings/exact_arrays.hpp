// What the exact engine reads of Python: columns, rows with targets, and what it returns of trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/columns.hpp"
#include "base/table.hpp"
#include "ensemble_arrays.hpp"
#include "grow/losses.hpp"
#include "model/ensemble.hpp"
#include "numpy.hpp"

namespace lhtree {

inline std::vector<base::Column> read_columns(nb::handle object) {
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

using Flags = Input<std::uint8_t, 1>;

/// A table by rows or by columns, where it lies.
template <class T>
using TableArray = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

/// A field of a Python object that is such a table.
template <class T>
TableArray<T> get_table(nb::handle object, const char* name) {
  const nb::object field = object.attr(name);
  TableArray<T> table;
  if (!nb::try_cast(field, table, false))
    throw std::invalid_argument(std::string("the array '") + name +
                                "' has the wrong type or number of dimensions");
  return table;
}

template <class T>
base::Values<T> to_values(const TableArray<T>& X) {
  return {X.data(), static_cast<std::int64_t>(X.shape(0)), static_cast<std::int64_t>(X.shape(1)),
          X.stride(0), X.stride(1)};
}

template <class Array>
auto data_of(const std::optional<Array>& array) {
  return array ? array->data() : nullptr;
}

/// Refuse weights with which sums could overflow.
inline void check_weight(const std::optional<Longs>& weight, std::size_t n_rows) {
  if (!weight) return;
  check_length(weight->size(), n_rows, "weight");
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n_rows; ++i) {
    demand((*weight)(i) > 0, "weights must be positive");
    sum += static_cast<std::uint64_t>((*weight)(i));
    demand(sum >> stats::weight_bits == 0, "the sum of the weights must be below 2**40");
  }
}

inline void check_held_out(const std::optional<Flags>& held_out, std::size_t n_rows) {
  if (!held_out) return;
  check_length(held_out->size(), n_rows, "held_out");
  demand(std::count(held_out->data(), held_out->data() + n_rows, 0) > 0,
         "there must be rows to train on");
}

inline base::Layout make_layout(const std::vector<base::Column>& columns) {
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
  std::optional<TableArray<double>> doubles;  // raw rows, read where there is no z
  std::optional<TableArray<float>> floats;
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
  void read_score(const TableArray<std::int64_t>& given) {
    score.resize(given.size());
    const std::size_t n = given.shape(1);
    for (std::size_t i = 0; i < given.shape(0); ++i)
      for (std::size_t k = 0; k < n; ++k)
        score[i * n + k] = given.data()[static_cast<std::int64_t>(i) * given.stride(0) +
                                        static_cast<std::int64_t>(k) * given.stride(1)];
  }

  template <class T>
  void read_raw(nb::handle object, const std::vector<base::Column>& columns,
                std::optional<TableArray<T>>& table) {
    TableArray<T> found;
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

inline nb::dict trees_to_dict(model::Ensemble trees, std::size_t n_outputs) {
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

}  // namespace lhtree
