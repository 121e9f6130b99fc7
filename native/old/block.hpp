// Rows that are asked together: standardised, and in single precision for guesses.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "chain_kernels.hpp"

namespace lhtree {

/// Rows on their way through a forest: standardised, in whole lanes.
struct Block {
  std::int64_t n_rows;
  std::int64_t n_columns;
  std::int64_t width;
  bool has_missing;           // whether a value is NaN
  std::vector<double> value;  // [n_rows, width]
  const double* row(std::int64_t i) const { return value.data() + i * width; }
};

/// The rows of a block in single precision, and how far guesses about each may be off.
struct RoughRows {
  std::vector<float> value;  // [n_rows, n_columns]
  std::vector<float> error;
  double farthest = 0.0;  // distance of a hyperplane from the origin for which errors hold
};

inline std::vector<double> find_lengths(const Block& block) {
  std::vector<double> length(block.n_rows);
  for (std::int64_t i = 0; i < block.n_rows; ++i) {
    const double* row = block.row(i);
    double square = 0.0;
    for (std::int64_t j = 0; j < block.n_columns; ++j) square += row[j] * row[j];
    length[i] = std::sqrt(square);
  }
  return length;
}

inline double find_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Errors hold for so many columns: what rounding does to roundings is then within `slack`.
inline constexpr std::int64_t most_rough_columns = 100'000;

/// A product with m weights of length one, all rounded, is off by at most (m + 2) u times the
/// row's length, where u is the rounding of floats; added up in parts, m is the length of a
/// part and their number. The threshold adds u times itself, and the difference u times either.
/// One u more of each stands for the exact product and the rounding of the error. What goes
/// below the range of floats is less than the last summand.
inline RoughRows round_rows(const Block& block) {
  constexpr double u = 0x1p-24, longest = 1e15, slack = 1.01, least = 1e-30;
  const std::int64_t m = block.n_columns, part = std::min(m, Chain::columns_per_sum);
  const auto n_sums = static_cast<double>(part + (m + part - 1) / part);
  const std::vector<double> length = find_lengths(block);
  RoughRows rough;
  rough.farthest = std::min(4.0 * find_median(length), longest);  // farther ones are rare
  rough.value.resize(block.n_rows * m);
  rough.error.resize(block.n_rows);
  for (std::int64_t i = 0; i < block.n_rows; ++i) {
    const bool is_usual = length[i] <= longest;
    for (std::int64_t j = 0; j < m; ++j)
      rough.value[i * m + j] = is_usual ? static_cast<float>(block.row(i)[j]) : 0.0f;
    const double rounding = u * ((n_sums + 4.0) * length[i] + 3.0 * rough.farthest);
    const double error = slack * (rounding + static_cast<double>(m) * least);
    rough.error[i] = is_usual ? static_cast<float>(error) : std::numeric_limits<float>::infinity();
  }
  return rough;
}

}  // namespace lhtree
