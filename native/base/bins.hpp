// Bins of a column: at most 255, of about the same weight each, and one more for missing values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/wide.hpp"
#include "old/pages.hpp"

namespace lhtree::base {

constexpr int most_bins = 255;
constexpr int most_codes = most_bins + 1;  // and one for missing values

/// Values that weigh at least one part in so many have bins of their own: few enough of them
/// that others are left.
constexpr std::uint64_t count_heavy_parts(int max_bins) {
  return (static_cast<std::uint64_t>(max_bins) + 1) / 4;
}
static_assert(count_heavy_parts(most_bins) == 64);

/// A value of a column and the weight of its rows.
struct Counted {
  double value;
  std::uint64_t weight;
};
using CountedValues = PageVector<Counted>;

/// A threshold that separates two values: low < c <= high.
inline double compute_middle(double low, double high) {
  const double middle = low / 2 + high / 2;
  return low < middle && middle <= high ? middle : high;
}

/// The thresholds between at most `max_bins` bins of a column, from its distinct values,
/// ascending. Bin b holds x with threshold[b - 1] <= x < threshold[b].
inline std::vector<double> make_thresholds(const CountedValues& values, int max_bins) {
  std::vector<double> threshold;
  const auto add = [&](std::size_t k) {  // between value k - 1 and value k
    threshold.push_back(compute_middle(values[k - 1].value, values[k].value));
  };
  if (values.size() <= static_cast<std::size_t>(max_bins)) {
    for (std::size_t k = 1; k < values.size(); ++k) add(k);
    return threshold;
  }
  const std::uint64_t n_parts = count_heavy_parts(max_bins);
  std::uint64_t whole = 0, light = 0, n_heavy = 0;
  for (const Counted& each : values) whole += each.weight;
  const auto is_heavy = [&](std::size_t k) { return values[k].weight * n_parts >= whole; };
  for (std::size_t k = 0; k < values.size(); ++k)
    is_heavy(k) ? ++n_heavy : light += values[k].weight;
  const std::uint64_t n_slots = static_cast<std::uint64_t>(max_bins) - 2 * n_heavy;
  std::uint64_t rank = 0, before = 0;  // the weight of light values so far
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::uint64_t slot = rank * n_slots / std::max<std::uint64_t>(light, 1);
    if (k > 0 && (is_heavy(k) || is_heavy(k - 1) || slot != before)) add(k);
    before = slot;
    if (!is_heavy(k)) rank += values[k].weight;
  }
  return threshold;
}

/// The bin of a value: the number of thresholds that are not above it. Missing values come last.
inline std::uint8_t look_up_bin(const double* threshold, std::size_t n, double x) {
  if (std::isnan(x)) return static_cast<std::uint8_t>(n + 1);
  if (n == 0) return 0;
  const double* begin = threshold;
  for (; n > 1; n -= n / 2) begin += begin[n / 2 - 1] <= x ? n / 2 : 0;
  return static_cast<std::uint8_t>(begin - threshold + (*begin <= x));
}

}  // namespace lhtree::base
