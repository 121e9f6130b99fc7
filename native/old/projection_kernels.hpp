// Loops that take the time: projections of rows.
//
// They are compiled once per instruction set and picked at load time; all
// versions give the same bits.
#pragma once

#include <cstdint>

#include "lanes.hpp"

namespace lhtree {

/// One linear form: the columns of its terms and their weights.
struct FormView {
  const std::int32_t* feature;  // null: all columns in order
  const double* weight;
  std::int64_t n_terms;
  bool is_padded;  // weights may be read in whole lanes: past the columns, they or the rows are 0
  const double* center = nullptr;  // what stands for missing values; null: there are none
};

/// Where the rows of a projection are: in a cache, or anywhere in a large table.
enum class Place { cached, scattered };

/// score[i] = sum of weight * value over the terms of each row, in the order that combine()
/// completes. `row[i]` must be readable in whole lanes.
void project(const double* const* row, std::int64_t n_rows, FormView form, Place place,
             double* score);
void project(const float* const* row, std::int64_t n_rows, FormView form, Place place,
             double* score);

/// Linear forms over all columns, one per row.
struct DenseForms {
  const double* const* weight;
  std::int64_t n_terms;
  const double* end;  // of the array in which all weights lie
};

/// The same for one form per row.
void project_each(const double* const* row, DenseForms forms, std::int64_t n_rows, double* score);

/// The same where the terms' columns lie side by side: column[k][i] is row i of term k.
void project_columns(const double* const* column, std::int64_t n_rows, FormView form,
                     double* score);

/// The same for one row, relative to `center`; a missing value adds nothing.
double project_centered(const double* row, FormView form, const double* center);

}  // namespace lhtree
