// Learning the columns of tables, and encoding rows as bins and values on the grids.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/reals.hpp"
#include "read_columns.hpp"
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

using Encoded = std::pair<Output<std::uint8_t, 2>, std::optional<Output<std::int32_t, 2>>>;

Encoded to_arrays(base::EncodedRows rows, std::size_t n_rows, std::size_t n_columns, bool wants_z) {
  std::optional<Output<std::int32_t, 2>> z;
  if (wants_z) z = to_numpy<std::int32_t, 2>(std::move(rows.z), {n_rows, n_columns});
  return {to_numpy<std::uint8_t, 2>(std::move(rows.bin), {n_rows, n_columns}), std::move(z)};
}

void check_max_bins(int max_bins) {
  demand(2 <= max_bins && max_bins <= base::most_bins, "max_bins must lie from 2 to 255");
}

/// Learn the columns of a table of rows of positive weight, but for those held out, and encode it.
template <class T>
std::pair<nb::dict, Encoded> learn_columns(const AnyOrder<T>& X, const std::optional<Longs>& weight,
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
Encoded encode_rows(const AnyOrder<T>& X, nb::handle columns_object, bool wants_z,
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

template <class T>
void bind_for(nb::module_& m) {
  m.def("learn_columns", &learn_columns<T>, "X"_a.noconvert(), "weight"_a.none(),
        "held_out"_a.none(), "n_codes"_a, "max_bins"_a, "wants_z"_a, "n_threads"_a);
  m.def("encode_rows", &encode_rows<T>, "X"_a.noconvert(), "columns"_a, "wants_z"_a, "n_threads"_a);
}

}  // namespace

void bind_columns(nb::module_& m) {
  bind_for<double>(m);
  bind_for<float>(m);
  m.def("learn_sparse", &learn_sparse, "start"_a.noconvert(), "column"_a.noconvert(),
        "value"_a.noconvert(), "n_columns"_a, "weight"_a.none(), "held_out"_a.none(), "max_bins"_a,
        "wants_z"_a, "n_threads"_a);
  m.def("encode_sparse", &encode_sparse, "start"_a.noconvert(), "column"_a.noconvert(),
        "value"_a.noconvert(), "columns"_a, "wants_z"_a, "n_threads"_a);
  m.def(
      "compute_log", [](double x) { return base::log(x); }, "x"_a);
  m.def(
      "compute_exp", [](double x) { return base::exp(x); }, "x"_a);
}

}  // namespace lhtree
