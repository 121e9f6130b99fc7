// The loops that take the time: sums over rows and projections of rows.
//
// They are compiled once per instruction set and picked at load time; all
// versions give the same bits.
#pragma once

#include <cstdint>

#include "lanes.hpp"
#include "table.hpp"

namespace lhtree {

/// Rows of a table, by index, with an optional weight per table row.
struct RowSet {
  const std::uint32_t* row;
  std::int64_t size;
  const double* weight;  // [n_rows of the table] or null: every row counts once
};

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

/// Sum of weight * (value - origin); adds the sum of weight * (value - origin)^2 to `square`.
/// `weight` may be null.
double add_values(const double* value, const double* weight, std::int64_t n, double origin,
                  double& square);

/// Add the products of all pairs of columns over `n` rows: product[i * p + j] for j <= i
/// gets the sum of a[i] * b[j]. `n` is a multiple of eight; zeros fill what is missing.
void multiply_columns(const double* const* a, const double* const* b, std::int64_t p,
                      std::int64_t n, double* product);

/// value[i] = column[row[i]].
void gather_values(const double* column, const std::uint32_t* row, std::int64_t n, double* value);
void gather_values(const float* column, const std::uint32_t* row, std::int64_t n, double* value);

/// value[i] = (value[i] - center) / unit.
void standardize_values(double* value, std::int64_t n, double center, double unit);

/// For each bin of rows, how pure cuts in it can be: the larger, the purer.
///
/// A cut with weight n on its left, t of it targets, has purity t^2 / n plus the same of
/// its right. `behind` gets the purity of the cut behind each bin, `inside` a bound for
/// those inside: purity is convex, so it is largest at an end of the bin or where all of
/// its targets, or all of its rest, lie on the left. `target` and `all` hold the sums
/// before each bin and, at n_bins, those of all rows. A cut with nothing on one side has
/// purity 0.
void find_purity(const double* target, const double* all, std::int64_t n_bins, double* behind,
                 double* inside);

/// Number the values by bins of equal width: (value - lowest) * scale, at most `last`.
void find_bins(const double* value, std::int64_t n, double lowest, double scale, std::int32_t last,
               std::uint8_t* bin);

/// The same for up to 2^31 bins and values that may lie beyond the ends: they go into the
/// first and the last.
void find_bins(const double* value, std::int64_t n, double lowest, double scale, std::int32_t last,
               std::int32_t* bin);

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

/// The same for several dense forms at once, for rows that are far away: score[f][place[i]]
/// is form f of row i. Each row is read once.
inline constexpr int most_forms = 4;
void project_forms(const double* const* row, std::int64_t n_rows, const FormView* form, int n_forms,
                   const std::int32_t* place, double* const* score);

/// The same where the terms' columns lie side by side: column[k][i] is row i of term k.
void project_columns(const double* const* column, std::int64_t n_rows, FormView form,
                     double* score);

/// The same for one row, relative to `center`; a missing value adds nothing.
double project_centered(const double* row, FormView form, const double* center);

/// Lower each distance to that from the hyperplane, |score - threshold| / norm, if it is less.
void shorten(double* distance, const double* score, std::int64_t n, double threshold, double norm);

/// Rows on their way through a tree, and the distance of each so far.
struct Walkers {
  std::int32_t* row;
  double* distance;
};

/// Move the `n` rows with a score below the threshold to the front and the others behind
/// them, each in their order; `spare` has room for all. Returns how many are in front.
std::int64_t divide_rows(Walkers rows, std::int64_t n, const double* score, double threshold,
                         Walkers spare);

/// Smallest and largest of `n` > 0 values.
struct Extremes {
  double min;
  double max;
};
Extremes find_extremes(const double* score, std::int64_t n);

/// How projections on new weights follow from those known on earlier ones: for a row of that
/// length they lie within reach * length + floor of factor * known + shift.
struct Transfer {
  double factor;
  double shift;
  double reach;
  double floor;
};

/// For rows by number: write guess and error; returns the least upper and the greatest lower
/// bound of the projections.
Extremes transfer_scores(const float* known, const float* length, const std::uint32_t* row,
                         std::int64_t n, Transfer transfer, double* guess, double* error);

/// List the values that may lie outside of (low, high); returns how many there are.
std::int64_t list_outside(const double* guess, const double* error, std::int64_t n, double low,
                          double high, std::uint32_t* place);

/// List the values whose side of `threshold` is not sure; returns how many there are.
std::int64_t list_near(const double* guess, const double* error, std::int64_t n, double threshold,
                       std::uint32_t* place);

/// Length of each of `n` rows of `n_columns` about `middle`, rounded up.
void measure_rows(const double* const* row, std::int64_t n, const double* middle,
                  std::int64_t n_columns, float* length);
void measure_rows(const float* const* row, std::int64_t n, const double* middle,
                  std::int64_t n_columns, float* length);

/// How many of the values lie strictly below `low` and strictly above `high`.
struct Outside {
  double below;
  double above;
};
Outside count_outside(const double* score, RowSet rows, double low, double high);

}  // namespace lhtree
