// Loops that take the time: guesses of projections; see recall.hpp.
//
// They are compiled once per instruction set and picked at load time; all
// versions give the same bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "score_kernels.hpp"

namespace lhtree {

/// How projections on new weights follow from those known on earlier ones: for a row of that
/// length they lie within find_error(length) of factor * known + shift.
struct Transfer {
  double factor;
  double shift;
  double reach;
  double floor;

  double guess(float known) const { return factor * static_cast<double>(known) + shift; }

  /// No less than it is; what is not a number stays so and decides nothing.
  double find_error(float length) const {
    constexpr double rounding = 1.0 + 1e-9, least = 1e-37;
    const double error = (reach * static_cast<double>(length) + floor) * rounding;
    return error < least ? least : error;
  }
};

/// A projection as it is remembered: in single precision, and not a number where that cannot hold
/// it, so that it decides nothing.
inline float remember(double score) {
  const auto known = static_cast<float>(score);
  return std::isfinite(known) ? known : std::numeric_limits<float>::quiet_NaN();
}

/// What is known of rows: `known` and `length` have a value for each row of the table.
struct KnownRows {
  const float* known;
  const float* length;
  const std::uint32_t* row;
  std::int64_t n;
};

/// The least upper and the greatest lower bound of guessed projections.
Extremes bound_guesses(KnownRows rows, Transfer transfer);

/// List the rows whose projections may lie outside of (low, high); returns how many there are.
std::int64_t list_outside(KnownRows rows, Transfer transfer, double low, double high,
                          std::uint32_t* place);

/// Mark the rows whose guess is below `threshold`, and list those whose side is not sure; returns
/// how many there are.
std::int64_t mark_below(KnownRows rows, Transfer transfer, double threshold, std::uint8_t* is_below,
                        std::uint32_t* place);

/// Length of each of `n` rows of `n_columns` about `middle`, rounded up.
void measure_rows(const double* const* row, std::int64_t n, const double* middle,
                  std::int64_t n_columns, float* length);
void measure_rows(const float* const* row, std::int64_t n, const double* middle,
                  std::int64_t n_columns, float* length);

}  // namespace lhtree
