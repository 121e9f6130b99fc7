#include "explain.hpp"

namespace lhtree {
namespace {

constexpr double largest_part = 1e290;  // a sum of parts stays finite
// Parts of both signs beyond it would cancel to less than nine digits of a membership.
constexpr double largest_exact_sum = 1e5;

/// What a term adds; 0 for a missing value.
LHTREE_INLINE double find_part(const double* row, const Parts& parts, std::int64_t k,
                               std::int64_t column) {
  const double offset = row[column] - parts.center[k];
  const double part = parts.form.weight[k] * (offset == offset ? offset : 0.0);
  return std::clamp(part, -largest_part, largest_part);
}

LHTREE_INLINE double add_up(double* size, std::int64_t n) {
  for (std::int64_t k = n; k < padded(n); ++k) size[k] = 0.0;
  Lanes sum = fill(0.0);
  for (std::int64_t k = 0; k < n; k += lane_count) sum = sum + load(size + k);
  return combine(sum);
}

/// Fill `size` with |part|, or with |weight| if all parts are 0; returns the sum.
LHTREE_INLINE double find_sizes(const double* row, const Parts& parts) {
  const std::int64_t n = parts.form.n_terms;
  if (const std::int32_t* feature = parts.form.feature)
    for (std::int64_t k = 0; k < n; ++k)
      parts.size[k] = std::abs(find_part(row, parts, k, feature[k]));
  else
    for (std::int64_t k = 0; k < n; ++k) parts.size[k] = std::abs(find_part(row, parts, k, k));
  const double sum = add_up(parts.size, n);
  if (sum > 0.0) return sum;
  for (std::int64_t k = 0; k < n; ++k) parts.size[k] = std::abs(parts.form.weight[k]);
  return add_up(parts.size, n);
}

/// total[column] += factor * size.
LHTREE_INLINE void add_sizes(const Parts& parts, double factor, double* total) {
  const std::int64_t n = parts.form.n_terms;
  if (const std::int32_t* feature = parts.form.feature)
    for (std::int64_t k = 0; k < n; ++k) total[feature[k]] += factor * parts.size[k];
  else
    for (std::int64_t k = 0; k < n; ++k) total[k] += factor * parts.size[k];
}

}  // namespace

LHTREE_CLONES void divide_change(const double* row, const Parts& parts, double change,
                                 double* total) {
  const double sum = find_sizes(row, parts);
  add_sizes(parts, change / sum, total);
}

LHTREE_CLONES void divide_line(const double* row, const Parts& parts, double change,
                               double* total) {
  const std::int64_t n = parts.form.n_terms;
  const std::int32_t* feature = parts.form.feature;
  double above = 0.0, below = 0.0;  // sums of the positive and of the negative parts
  for (std::int64_t k = 0; k < n; ++k) {
    const double part = parts.size[k] = find_part(row, parts, k, feature ? feature[k] : k);
    (part > 0.0 ? above : below) += std::abs(part);
  }
  const double sum = above + below;
  if (!(sum > 0.0)) return;  // the membership is the leaf's share
  // part + (change - above + below) * |part| / sum, without a difference of large numbers.
  double up = (change + 2.0 * below) / sum, down = (2.0 * above - change) / sum;
  if (sum > largest_exact_sum) up = change / sum, down = -up;
  for (std::int64_t k = 0; k < n; ++k)
    total[feature ? feature[k] : k] += parts.size[k] * (parts.size[k] > 0.0 ? up : down);
}

}  // namespace lhtree
