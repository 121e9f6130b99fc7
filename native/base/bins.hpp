// Bins of a column: at most 255, of about the same weight each, and one more for missing values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/wide.hpp"

namespace lhtree::base {

constexpr int most_bins = 255;
constexpr int most_codes = most_bins + 1;  // and one for missing values
constexpr std::uint64_t heavy = 64;        // a value with a 64th of the weight has a bin of its own

/// A value of a column and the weight of its rows.
struct Counted {
  double value;
  std::uint64_t weight;
};

/// A threshold that separates two values: low < c <= high.
inline double compute_middle(double low, double high) {
  const double middle = low / 2 + high / 2;
  return low < middle && middle <= high ? middle : high;
}

/// The thresholds between the bins of a column, from its distinct values, ascending. Bin b holds
/// x with threshold[b - 1] <= x < threshold[b].
inline std::vector<double> make_thresholds(const std::vector<Counted>& values) {
  std::vector<double> threshold;
  const auto add = [&](std::size_t k) {  // between value k - 1 and value k
    threshold.push_back(compute_middle(values[k - 1].value, values[k].value));
  };
  if (values.size() <= most_bins) {
    for (std::size_t k = 1; k < values.size(); ++k) add(k);
    return threshold;
  }
  std::uint64_t whole = 0, light = 0, n_heavy = 0;
  for (const Counted& each : values) whole += each.weight;
  const auto is_heavy = [&](std::size_t k) { return values[k].weight * heavy >= whole; };
  for (std::size_t k = 0; k < values.size(); ++k)
    is_heavy(k) ? ++n_heavy : light += values[k].weight;
  const std::uint64_t n_slots = most_bins - 2 * n_heavy;
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
