// Loops that take the time: guesses of projections; see recall.hpp.
//
// They are compiled once per instruction set and picked at load time; all
// versions give the same bits.
#pragma once

#include <algorithm>
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

  /// Guesses follow what is known, upwards or downwards; of none there are none.
  Extremes guess(Extremes known) const {
    if (known.min > known.max) return known;
    const double first = factor * known.min + shift, last = factor * known.max + shift;
    return {std::min(first, last), std::max(first, last)};
  }

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

/// What is known of rows: `known` has a value for each of them, `length` for each row of the table.
struct KnownRows {
  const float* known;
  const ShortLength* length;
  const std::uint32_t* row;
};

/// The extremes of what is known. Not a number is none; with no other value, min is above max.
Extremes find_known_extremes(const float* known, std::int64_t n);

/// List the places of guesses that are not in (low, high) by more than `error`; returns how many
/// there are.
std::int64_t list_outside(const float* known, std::int64_t n, Transfer transfer, double error,
                          double low, double high, std::uint32_t* place);

/// Mark the guesses below `threshold`, and list the places of those that are no further from it
/// than `error`; returns how many there are.
std::int64_t mark_below(const float* known, std::int64_t n, Transfer transfer, double error,
                        double threshold, std::uint8_t* is_below, std::uint32_t* place);

/// The least upper bound, as min, and the greatest lower bound, as max, of the projections of rows
/// in these places.
Extremes bound_guesses(KnownRows rows, Transfer transfer, const std::uint32_t* place,
                       std::int64_t n_listed);

/// Keep the places whose projections may lie outside of (low, high); returns how many there are.
std::int64_t keep_outside(KnownRows rows, Transfer transfer, double low, double high,
                          std::uint32_t* place, std::int64_t n_listed);

/// Keep the places whose projections may lie on either side of `threshold`; returns how many there
/// are.
std::int64_t keep_unsure(KnownRows rows, Transfer transfer, double threshold, std::uint32_t* place,
                         std::int64_t n_listed);

/// Length of a row of `n_columns` about `middle`, rounded up.
float measure_row(const double* row, const double* middle, std::int64_t n_columns);
float measure_row(const float* row, const double* middle, std::int64_t n_columns);

}  // namespace lhtree
