#include "score_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lhtree {

LHTREE_CLONES void gather_values(const double* column, const std::uint32_t* row, std::int64_t n,
                                 double* value) {
  for (std::int64_t i = 0; i < n; ++i) value[i] = column[row[i]];
}

LHTREE_CLONES void gather_values(const float* column, const std::uint32_t* row, std::int64_t n,
                                 double* value) {
  for (std::int64_t i = 0; i < n; ++i) value[i] = column[row[i]];
}

LHTREE_CLONES void standardize_values(double* value, std::int64_t n, double center, double unit) {
  for (std::int64_t i = 0; i < n; ++i) value[i] = (value[i] - center) / unit;
}

LHTREE_CLONES void find_gaps(const double* score, std::int64_t n, double threshold, double norm,
                             double* gap) {
  for (std::int64_t i = 0; i < n; ++i) gap[i] = find_gap(score[i], threshold, norm);
}

LHTREE_CLONES std::int64_t divide_rows(std::int32_t* row, std::int64_t n, const double* score,
                                       double threshold, std::int32_t* spare) {
  // Both sides are written for every row: which one counts is hard to predict.
  std::int64_t n_left = 0, n_right = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t is_left = score[k] < threshold;
    const std::int32_t number = row[k];
    spare[n_right] = number;
    row[n_left] = number;
    n_left += is_left;
    n_right += 1 - is_left;
  }
  std::copy_n(spare, n_right, row + n_left);
  return n_left;
}

LHTREE_CLONES Extremes find_extremes(const double* score, std::int64_t n) {
  Extremes extremes{score[0], score[0]};
  std::int64_t i = 0;
  if (n >= lane_count) {
    double low[lane_count], high[lane_count];  // of every eighth value
    for (int k = 0; k < lane_count; ++k) low[k] = high[k] = score[k];
    for (i = lane_count; i + lane_count <= n; i += lane_count)
      for (int k = 0; k < lane_count; ++k) {
        low[k] = score[i + k] < low[k] ? score[i + k] : low[k];
        high[k] = score[i + k] > high[k] ? score[i + k] : high[k];
      }
    for (int k = 0; k < lane_count; ++k) {
      extremes.min = low[k] < extremes.min ? low[k] : extremes.min;
      extremes.max = high[k] > extremes.max ? high[k] : extremes.max;
    }
  }
  for (; i < n; ++i) {
    extremes.min = score[i] < extremes.min ? score[i] : extremes.min;
    extremes.max = score[i] > extremes.max ? score[i] : extremes.max;
  }
  return extremes;
}

LHTREE_CLONES Outside count_outside(const double* score, RowSet rows, double low, double high) {
  if (!rows.weight) {
    std::int64_t below = 0, above = 0;
    for (std::int64_t i = 0; i < rows.size; ++i) {
      below += score[i] < low;
      above += score[i] > high;
    }
    return {static_cast<double>(below), static_cast<double>(above)};
  }
  Outside outside{0.0, 0.0};
  for (std::int64_t i = 0; i < rows.size; ++i) {
    const double weight = rows.weight[rows.row[i]];
    if (score[i] < low) outside.below += weight;
    if (score[i] > high) outside.above += weight;
  }
  return outside;
}

LHTREE_CLONES void find_purity(const double* target, const double* all, std::int64_t n_bins,
                               double* behind, double* inside) {
  const double whole_target = target[n_bins], whole = all[n_bins];
  // One division instead of two: t^2 / n + u^2 / m = (t^2 m + u^2 n) / (n m).
  const auto purity = [=](double t, double n) {
    const double u = whole_target - t, m = whole - n, product = n * m;
    return product > 0.0 ? (t * t * m + u * u * n) / product : 0.0;
  };
  for (std::int64_t b = 0; b < n_bins; ++b) {
    const double targets = target[b + 1] - target[b], rest = all[b + 1] - all[b] - targets;
    const double targets_first = purity(target[b] + targets, all[b] + targets);
    const double rest_first = purity(target[b], all[b] + rest);
    behind[b] = purity(target[b + 1], all[b + 1]);
    const double corner = targets_first > rest_first ? targets_first : rest_first;
    inside[b] = corner > behind[b] ? corner : behind[b];
  }
  for (std::int64_t b = 1; b < n_bins; ++b)
    inside[b] = inside[b] > behind[b - 1] ? inside[b] : behind[b - 1];
}

LHTREE_CLONES void find_bins(const double* value, std::int64_t n, double lowest, double scale,
                             std::int32_t last, std::uint16_t* bin) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto number = static_cast<std::int32_t>((value[i] - lowest) * scale);
    bin[i] = static_cast<std::uint16_t>(number < last ? number : last);
  }
}

LHTREE_CLONES void find_bins(const double* value, std::int64_t n, double lowest, double scale,
                             std::int32_t last, std::int32_t* bin) {
  const auto most = static_cast<double>(last);
  for (std::int64_t i = 0; i < n; ++i) {
    double number = (value[i] - lowest) * scale;
    number = number > 0.0 ? number : 0.0;
    bin[i] = static_cast<std::int32_t>(number < most ? number : most);
  }
}

LHTREE_CLONES Edge find_edge(const double* value, const std::uint16_t* code, std::int64_t n,
                             std::uint16_t bin) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double below[lane_count], above[lane_count];  // of every eighth value
  std::fill_n(below, lane_count, -infinity);
  std::fill_n(above, lane_count, infinity);
  const auto look = [&](std::int64_t i, std::int64_t k) {
    const double low = code[i] <= bin ? value[i] : -infinity;
    const double high = code[i] <= bin ? infinity : value[i];
    below[k] = low > below[k] ? low : below[k];
    above[k] = high < above[k] ? high : above[k];
  };
  std::int64_t i = 0;
  for (; i + lane_count <= n; i += lane_count)
    for (std::int64_t k = 0; k < lane_count; ++k) look(i + k, k);
  for (; i < n; ++i) look(i, 0);
  return {*std::max_element(below, below + lane_count),
          *std::min_element(above, above + lane_count)};
}

}  // namespace lhtree
