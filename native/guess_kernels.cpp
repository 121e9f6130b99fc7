#include "guess_kernels.hpp"

#include <algorithm>
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

LHTREE_CLONES Extremes bound_guesses(KnownRows rows, Transfer transfer) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr std::int64_t piece = 8 * lane_count;  // what is gathered stays in the fastest cache
  // A guess that is not a number bounds nothing: comparisons with it are false.
  double above[lane_count], below[lane_count];
  std::fill_n(above, lane_count, infinity);
  std::fill_n(below, lane_count, -infinity);
  float known[piece], length[piece];
  const auto bound = [&](std::int64_t i, std::int64_t k) {
    const double guess = transfer.guess(known[i]), error = transfer.find_error(length[i]);
    const double upper = guess + error, lower = guess - error;
    above[k] = upper < above[k] ? upper : above[k];
    below[k] = lower > below[k] ? lower : below[k];
  };
  for (std::int64_t begin = 0; begin < rows.n; begin += piece) {
    const std::int64_t n = std::min(piece, rows.n - begin);
    for (std::int64_t i = 0; i < n; ++i) {
      known[i] = rows.known[rows.row[begin + i]];
      length[i] = rows.length[rows.row[begin + i]];
    }
    std::int64_t i = 0;
    for (; i + lane_count <= n; i += lane_count)
      for (std::int64_t k = 0; k < lane_count; ++k) bound(i + k, k);
    for (; i < n; ++i) bound(i, 0);
  }
  return {*std::min_element(above, above + lane_count),
          *std::max_element(below, below + lane_count)};
}

LHTREE_CLONES std::int64_t list_outside(KnownRows rows, Transfer transfer, double low, double high,
                                        std::uint32_t* place) {
  std::int64_t n_listed = 0;
  for (std::int64_t i = 0; i < rows.n; ++i) {
    const double guess = transfer.guess(rows.known[rows.row[i]]);
    const double error = transfer.find_error(rows.length[rows.row[i]]);
    place[n_listed] = static_cast<std::uint32_t>(i);
    n_listed += !(guess - error > low && guess + error < high);
  }
  return n_listed;
}

LHTREE_CLONES std::int64_t mark_below(KnownRows rows, Transfer transfer, double threshold,
                                      std::uint8_t* is_below, std::uint32_t* place) {
  std::int64_t n_listed = 0;
  for (std::int64_t i = 0; i < rows.n; ++i) {
    const double guess = transfer.guess(rows.known[rows.row[i]]);
    const double error = transfer.find_error(rows.length[rows.row[i]]);
    is_below[i] = guess < threshold;
    place[n_listed] = static_cast<std::uint32_t>(i);
    n_listed += !(std::abs(guess - threshold) > error);
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
