// Loops that take the time: sums over rows and columns.
//
// They are compiled once per instruction set and picked at load time; all
// versions give the same bits.
#pragma once

#include <cstdint>

#include "lanes.hpp"
#include "table.hpp"

namespace lhtree {

/// Add the rows to `sum` and the squares to `square`, both about `origin`.
/// All three have the table's width; what lies past its columns is not defined.
void add_rows(const Table<double>& table, RowSet rows, const double* origin, double* sum,
              double* square);
void add_rows(const Table<float>& table, RowSet rows, const double* origin, double* sum,
              double* square);

/// The same for rows with missing values (NaN), which are left out; adds the weight of
/// those that are there to `present`.
void add_present_rows(const Table<double>& table, RowSet rows, const double* origin, double* sum,
                      double* square, double* present);
void add_present_rows(const Table<float>& table, RowSet rows, const double* origin, double* sum,
                      double* square, double* present);

/// Add `n` rows, about `origin`, to the sums of their groups, or take them out: group g has
/// `width` sums from sums[2 * g * width] on, then as many squares. The rows of `next`, as many,
/// are asked for meanwhile if it is not null.
void add_grouped(const double* const* row, const double* const* next, const std::uint32_t* group,
                 std::int64_t n, std::int64_t width, const double* origin, bool takes_out,
                 double* sums);
void add_grouped(const float* const* row, const float* const* next, const std::uint32_t* group,
                 std::int64_t n, std::int64_t width, const double* origin, bool takes_out,
                 double* sums);

/// Sum of weight * (value - origin); adds the sum of weight * (value - origin)^2 to `square`.
/// `weight` may be null.
double add_values(const double* value, const double* weight, std::int64_t n, double origin,
                  double& square);

/// Add the products of all pairs of columns over `n` rows: product[i * p + j] for j <= i
/// gets the sum of a[i] * b[j]. `n` is a multiple of eight; zeros fill what is missing.
void multiply_columns(const double* const* a, const double* const* b, std::int64_t p,
                      std::int64_t n, double* product);

}  // namespace lhtree
