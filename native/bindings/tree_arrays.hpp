// Rows with targets as the exact engine reads them, and the trees that it returns.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/columns.hpp"
#include "base/table.hpp"
#include "grow/losses.hpp"
#include "model/ensemble.hpp"
#include "read_columns.hpp"

namespace lhtree {

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

  /// Refuse targets that are not the index of a class.
  void check_classes(std::int64_t n_classes) const {
    for (std::size_t i = 0; i < y.size(); ++i)
      demand(0 <= y(i) && y(i) < n_classes, "y must have indices of classes");
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
    raw.emplace(to_values(*table), columns, dense_bin->data());
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

inline nb::dict to_dict(model::Ensemble trees, std::size_t n_outputs) {
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
