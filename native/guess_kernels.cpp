#include "guess_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace lhtree {
namespace {

/// The length of a row, in single precision and no shorter than it is.
template <class T>
LHTREE_INLINE float measure_row(const T* row, const double* middle, std::int64_t n_columns) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr double rounding = 1.0 + 1e-7;  // also of the sum, up to a billion columns
  Lanes sum = fill(0.0);
  const std::int64_t n_whole = n_columns / lane_count * lane_count;
  for (std::int64_t j = 0; j < n_whole; j += lane_count) {
    const Lanes x = load(row + j) - load(middle + j);
    sum = sum + x * x;
  }
  double square = combine(sum);
  for (std::int64_t j = n_whole; j < n_columns; ++j) {
    const double x = static_cast<double>(row[j]) - middle[j];
    square += x * x;
  }
  return std::nextafter(static_cast<float>(std::sqrt(square) * rounding), infinity);
}

}  // namespace

LHTREE_CLONES Extremes transfer_scores(const float* known, const float* length,
                                       const std::uint32_t* row, std::int64_t n, Transfer transfer,
                                       double* guess, std::uint32_t* error) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < n; ++i) {
    guess[i] = transfer.factor * static_cast<double>(known[row[i]]) + transfer.shift;
    error[i] = std::bit_cast<std::uint32_t>(transfer.find_error(length[row[i]]));
  }
  // A guess that is not a number bounds nothing: comparisons with it are false.
  double above[lane_count], below[lane_count];
  std::fill_n(above, lane_count, infinity);
  std::fill_n(below, lane_count, -infinity);
  const auto bound = [&](std::int64_t i, int k) {
    const double reach = std::bit_cast<float>(error[i]);
    const double upper = guess[i] + reach, lower = guess[i] - reach;
    above[k] = upper < above[k] ? upper : above[k];
    below[k] = lower > below[k] ? lower : below[k];
  };
  std::int64_t i = 0;
  for (; i + lane_count <= n; i += lane_count)
    for (int k = 0; k < lane_count; ++k) bound(i + k, k);
  for (; i < n; ++i) bound(i, 0);
  return {*std::min_element(above, above + lane_count),
          *std::max_element(below, below + lane_count)};
}

LHTREE_CLONES std::int64_t list_outside(const double* guess, std::int64_t n, double low,
                                        double high, std::uint32_t* error) {
  std::int64_t n_listed = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double reach = std::bit_cast<float>(error[i]);
    error[n_listed] = static_cast<std::uint32_t>(i);
    n_listed += !(guess[i] - reach > low && guess[i] + reach < high);
  }
  return n_listed;
}

LHTREE_CLONES std::int64_t list_near(const float* length, const std::uint32_t* row, std::int64_t n,
                                     Transfer transfer, const double* guess, double threshold,
                                     std::uint32_t* place) {
  std::int64_t n_listed = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    place[n_listed] = static_cast<std::uint32_t>(i);
    n_listed += !(std::abs(guess[i] - threshold) > transfer.find_error(length[row[i]]));
  }
  return n_listed;
}

LHTREE_CLONES void measure_rows(const double* const* row, std::int64_t n, const double* middle,
                                std::int64_t n_columns, float* length) {
  for (std::int64_t i = 0; i < n; ++i) length[i] = measure_row(row[i], middle, n_columns);
}

LHTREE_CLONES void measure_rows(const float* const* row, std::int64_t n, const double* middle,
                                std::int64_t n_columns, float* length) {
  for (std::int64_t i = 0; i < n; ++i) length[i] = measure_row(row[i], middle, n_columns);
}

}  // namespace lhtree
