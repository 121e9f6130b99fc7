// Loops that take the time: guesses of projections; see recall.hpp.
//
// They are compiled once per instruction set and picked at load time; all
// versions give the same bits.
#pragma once

#include <cstdint>

#include "score_kernels.hpp"

namespace lhtree {

/// How projections on new weights follow from those known on earlier ones: for a row of that
/// length they lie within find_error(length) of factor * known + shift.
struct Transfer {
  double factor;
  double shift;
  double reach;
  double floor;

  /// In single precision, no less than it is; what is not a number stays so and decides nothing.
  float find_error(float length) const {
    constexpr double rounding = 1.0 + 1.2e-7, least = 1e-37;
    const double error = (reach * static_cast<double>(length) + floor) * rounding;
    return static_cast<float>(error < least ? least : error);
  }
};

/// Write the guesses of rows by number, and the bits of their errors; returns the least upper and
/// the greatest lower bound of the projections.
Extremes transfer_scores(const float* known, const float* length, const std::uint32_t* row,
                         std::int64_t n, Transfer transfer, double* guess, std::uint32_t* error);

/// List the guesses that may lie outside of (low, high); returns how many there are. Their places
/// are written over the errors: both would take memory in a large node.
std::int64_t list_outside(const double* guess, std::int64_t n, double low, double high,
                          std::uint32_t* error);

/// List the guesses of rows by number whose side of `threshold` is not sure; returns how many
/// there are.
std::int64_t list_near(const float* length, const std::uint32_t* row, std::int64_t n,
                       Transfer transfer, const double* guess, double threshold,
                       std::uint32_t* place);

/// Length of each of `n` rows of `n_columns` about `middle`, rounded up.
void measure_rows(const double* const* row, std::int64_t n, const double* middle,
                  std::int64_t n_columns, float* length);
void measure_rows(const float* const* row, std::int64_t n, const double* middle,
                  std::int64_t n_columns, float* length);

}  // namespace lhtree
