#include "guess_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lhtree {
namespace {

/// The length of a row, in single precision and no shorter than it is.
template <class T>
LHTREE_INLINE float measure(const T* row, const double* middle, std::int64_t n_columns) {
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

constexpr std::int64_t piece_size = 8 * lane_count;  // guesses that stay in the fastest cache

/// Append the places from `begin` on that are marked by one, not by zero. Every place is
/// written: which ones count is hard to predict.
LHTREE_INLINE std::int64_t append_marked(const std::int64_t* is_marked, std::int64_t n,
                                         std::int64_t begin, std::uint32_t* place,
                                         std::int64_t n_listed) {
  for (std::int64_t i = 0; i < n; ++i) {
    place[n_listed] = static_cast<std::uint32_t>(begin + i);
    n_listed += is_marked[i];
  }
  return n_listed;
}

/// Keep the places of rows whose guess, with its error, passes a test.
template <class Test>
std::int64_t keep(const KnownRows& rows, const Transfer& transfer, std::uint32_t* place,
                  std::int64_t n_listed, const Test& test) {
  std::int64_t n_kept = 0;
  for (std::int64_t k = 0; k < n_listed; ++k) {
    const std::uint32_t i = place[k];
    const double error = transfer.find_error(rows.length[rows.row[i]]);
    place[n_kept] = i;
    n_kept += test(transfer.guess(rows.known[i]), error);
  }
  return n_kept;
}

}  // namespace

LHTREE_CLONES Extremes find_known_extremes(const float* known, std::int64_t n) {
  constexpr std::int64_t n_lanes = 4 * lane_count;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float min[n_lanes], max[n_lanes];
  std::fill_n(min, n_lanes, infinity);
  std::fill_n(max, n_lanes, -infinity);
  const auto look = [&](float value, std::int64_t k) {  // comparisons with NaN are false
    min[k] = value < min[k] ? value : min[k];
    max[k] = value > max[k] ? value : max[k];
  };
  std::int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes)
    for (std::int64_t k = 0; k < n_lanes; ++k) look(known[i + k], k);
  for (; i < n; ++i) look(known[i], 0);
  return {*std::min_element(min, min + n_lanes), *std::max_element(max, max + n_lanes)};
}

LHTREE_CLONES std::int64_t list_outside(const float* known, std::int64_t n, Transfer transfer,
                                        double error, double low, double high,
                                        std::uint32_t* place) {
  std::int64_t n_listed = 0, is_outside[piece_size];
  for (std::int64_t begin = 0; begin < n; begin += piece_size) {
    const std::int64_t n_here = std::min(piece_size, n - begin);
    for (std::int64_t i = 0; i < n_here; ++i) {
      const double guess = transfer.guess(known[begin + i]);
      is_outside[i] = !((guess - error > low) & (guess + error < high));
    }
    n_listed = append_marked(is_outside, n_here, begin, place, n_listed);
  }
  return n_listed;
}

LHTREE_CLONES std::int64_t mark_below(const float* known, std::int64_t n, Transfer transfer,
                                      double error, double threshold, std::uint8_t* is_below,
                                      std::uint32_t* place) {
  std::int64_t n_listed = 0, is_unsure[piece_size];
  for (std::int64_t begin = 0; begin < n; begin += piece_size) {
    const std::int64_t n_here = std::min(piece_size, n - begin);
    for (std::int64_t i = 0; i < n_here; ++i) {
      const double guess = transfer.guess(known[begin + i]);
      is_below[begin + i] = guess < threshold;
      is_unsure[i] = !(std::abs(guess - threshold) > error);
    }
    n_listed = append_marked(is_unsure, n_here, begin, place, n_listed);
  }
  return n_listed;
}

Extremes bound_guesses(KnownRows rows, Transfer transfer, const std::uint32_t* place,
                       std::int64_t n_listed) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Extremes bound{infinity, -infinity};
  for (std::int64_t k = 0; k < n_listed; ++k) {
    const double guess = transfer.guess(rows.known[place[k]]);
    const double error = transfer.find_error(rows.length[rows.row[place[k]]]);
    // A guess that is not a number bounds nothing: comparisons with it are false.
    bound.min = guess + error < bound.min ? guess + error : bound.min;
    bound.max = guess - error > bound.max ? guess - error : bound.max;
  }
  return bound;
}

std::int64_t keep_outside(KnownRows rows, Transfer transfer, double low, double high,
                          std::uint32_t* place, std::int64_t n_listed) {
  return keep(rows, transfer, place, n_listed, [&](double guess, double error) {
    return !((guess - error > low) & (guess + error < high));
  });
}

std::int64_t keep_unsure(KnownRows rows, Transfer transfer, double threshold, std::uint32_t* place,
                         std::int64_t n_listed) {
  return keep(rows, transfer, place, n_listed,
              [&](double guess, double error) { return !(std::abs(guess - threshold) > error); });
}

LHTREE_CLONES float measure_row(const double* row, const double* middle, std::int64_t n_columns) {
  return measure(row, middle, n_columns);
}

LHTREE_CLONES float measure_row(const float* row, const double* middle, std::int64_t n_columns) {
  return measure(row, middle, n_columns);
}

}  // namespace lhtree
