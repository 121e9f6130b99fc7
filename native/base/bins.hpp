// Bins of a column: at most 255, of about as many rows each, and one more for missing values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/radix_sort.hpp"

namespace lhtree::base {

constexpr int most_bins = 255;
constexpr int most_codes = most_bins + 1;  // and one for missing values
constexpr std::int64_t heavy = 64;         // a value of one row in 64 or more has a bin of its own

/// A value and how many rows have it.
struct Counted {
  double value;
  std::int64_t count;
};

/// A threshold that separates two values: low < c <= high.
inline double find_middle(double low, double high) {
  const double middle = low / 2 + high / 2;
  return low < middle && middle <= high ? middle : high;
}

/// The distinct values of sorted keys, ascending.
inline std::vector<Counted> count_values(const std::vector<std::uint64_t>& sorted) {
  std::vector<Counted> values;
  for (std::size_t i = 0, end = 0; i < sorted.size(); i = end) {
    while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
    values.push_back({from_key(sorted[i]), static_cast<std::int64_t>(end - i)});
  }
  return values;
}

/// The thresholds between the bins of a column, from its distinct values. Bin b holds x with
/// threshold[b - 1] <= x < threshold[b].
inline std::vector<double> make_thresholds(const std::vector<Counted>& values) {
  std::vector<double> threshold;
  const auto add = [&](std::size_t k) {  // between value k - 1 and value k
    threshold.push_back(find_middle(values[k - 1].value, values[k].value));
  };
  if (values.size() <= most_bins) {
    for (std::size_t k = 1; k < values.size(); ++k) add(k);
    return threshold;
  }
  std::int64_t n_rows = 0, n_light = 0, n_heavy = 0;
  for (const Counted& each : values) n_rows += each.count;
  const auto is_heavy = [&](std::size_t k) { return values[k].count * heavy >= n_rows; };
  for (std::size_t k = 0; k < values.size(); ++k)
    is_heavy(k) ? ++n_heavy : n_light += values[k].count;
  const std::int64_t n_slots = most_bins - 2 * n_heavy;
  std::int64_t rank = 0, before = 0;  // of the first row of a value among the light ones
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::int64_t slot = rank * n_slots / std::max<std::int64_t>(n_light, 1);
    if (k > 0 && (is_heavy(k) || is_heavy(k - 1) || slot != before)) add(k);
    before = slot;
    if (!is_heavy(k)) rank += values[k].count;
  }
  return threshold;
}

/// The bin of a value: the number of thresholds that are not above it. Missing values come last.
inline std::uint8_t find_bin(const std::vector<double>& threshold, double x) {
  if (std::isnan(x)) return static_cast<std::uint8_t>(threshold.size() + 1);
  const double* begin = threshold.data();
  std::size_t n = threshold.size();
  if (n == 0) return 0;
  for (; n > 1; n -= n / 2) begin += begin[n / 2 - 1] <= x ? n / 2 : 0;
  return static_cast<std::uint8_t>(begin - threshold.data() + (*begin <= x));
}

}  // namespace lhtree::base
