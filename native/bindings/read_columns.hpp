// Columns of the exact engine and flags of rows, from Python.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/columns.hpp"
#include "numpy.hpp"
#include "stats/sums.hpp"

namespace lhtree {

using Flags = Input<std::uint8_t, 1>;

/// The columns of a Python `GridColumns`.
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

template <class T>
base::Values<T> to_values(const AnyOrder<T>& X) {
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

}  // namespace lhtree
