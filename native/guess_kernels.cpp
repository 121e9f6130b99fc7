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

/// What is known of a few rows, side by side: it stays in the fastest cache, and loops over it
/// take several rows at once.
struct Piece {
  static constexpr std::int64_t most_rows = 8 * lane_count;

  LHTREE_INLINE Piece(const KnownRows& rows, std::int64_t begin)
      : n(std::min(most_rows, rows.n - begin)) {
    for (std::int64_t i = 0; i < n; ++i) {
      known[i] = rows.known[rows.row[begin + i]];
      length[i] = rows.length[rows.row[begin + i]];
    }
  }

  std::int64_t n;
  float known[most_rows], length[most_rows];
};

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

}  // namespace

LHTREE_CLONES Extremes bound_guesses(KnownRows rows, Transfer transfer) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  // A guess that is not a number bounds nothing: comparisons with it are false.
  double above[lane_count], below[lane_count];
  std::fill_n(above, lane_count, infinity);
  std::fill_n(below, lane_count, -infinity);
  for (std::int64_t begin = 0; begin < rows.n; begin += Piece::most_rows) {
    const Piece piece(rows, begin);
    const auto bound = [&](std::int64_t i, std::int64_t k) {
      const double guess = transfer.guess(piece.known[i]);
      const double error = transfer.find_error(piece.length[i]);
      const double upper = guess + error, lower = guess - error;
      above[k] = upper < above[k] ? upper : above[k];
      below[k] = lower > below[k] ? lower : below[k];
    };
    std::int64_t i = 0;
    for (; i + lane_count <= piece.n; i += lane_count)
      for (std::int64_t k = 0; k < lane_count; ++k) bound(i + k, k);
    for (; i < piece.n; ++i) bound(i, 0);
  }
  return {*std::min_element(above, above + lane_count),
          *std::max_element(below, below + lane_count)};
}

LHTREE_CLONES std::int64_t list_outside(KnownRows rows, Transfer transfer, double low, double high,
                                        std::uint32_t* place) {
  std::int64_t n_listed = 0, is_outside[Piece::most_rows];
  for (std::int64_t begin = 0; begin < rows.n; begin += Piece::most_rows) {
    const Piece piece(rows, begin);
    for (std::int64_t i = 0; i < piece.n; ++i) {
      const double guess = transfer.guess(piece.known[i]);
      const double error = transfer.find_error(piece.length[i]);
      is_outside[i] = !((guess - error > low) & (guess + error < high));
    }
    n_listed = append_marked(is_outside, piece.n, begin, place, n_listed);
  }
  return n_listed;
}

LHTREE_CLONES std::int64_t mark_below(KnownRows rows, Transfer transfer, double threshold,
                                      std::uint8_t* is_below, std::uint32_t* place) {
  std::int64_t n_listed = 0, is_unsure[Piece::most_rows];
  for (std::int64_t begin = 0; begin < rows.n; begin += Piece::most_rows) {
    const Piece piece(rows, begin);
    for (std::int64_t i = 0; i < piece.n; ++i) {
      const double guess = transfer.guess(piece.known[i]);
      const double error = transfer.find_error(piece.length[i]);
      is_below[begin + i] = guess < threshold;
      is_unsure[i] = !(std::abs(guess - threshold) > error);
    }
    n_listed = append_marked(is_unsure, piece.n, begin, place, n_listed);
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
