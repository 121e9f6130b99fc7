// Sums of columns times integer weights: projections on a hyperplane, of many rows at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/instructions.hpp"

namespace lhtree::base {

/// Set sum[i] to the sum over k of weight(k) * z(k)[i], for n rows and k = 0 ... n_terms - 1.
template <class GetWeight, class GetColumn>
void sum_products(std::int64_t n, std::int64_t n_terms, const GetWeight& weight, const GetColumn& z,
                  std::int64_t* sum) {
  constexpr std::int64_t few = 4;  // terms that are added at once: a sum is read and written once
  const std::int32_t* const zeros = n_terms > 0 ? z(0) : nullptr;
  std::fill_n(sum, n_terms > 0 ? 0 : n, 0);
  for (std::int64_t k = 0; k < n_terms; k += few) {
    std::int64_t w[few] = {};
    const std::int32_t* columns[few] = {zeros, zeros, zeros, zeros};
    for (std::int64_t j = 0; j < std::min(few, n_terms - k); ++j) {
      w[j] = weight(k + j);
      columns[j] = z(k + j);
    }
    const std::int64_t a = w[0], b = w[1], c = w[2], d = w[3];
    const std::int32_t *za = columns[0], *zb = columns[1], *zc = columns[2], *zd = columns[3];
    const bool is_first = k == 0;
    run_wide([=]() LHTREE_FLAT {
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t before = is_first ? 0 : sum[i];
        sum[i] = before + (a * za[i] + b * zb[i]) + (c * zc[i] + d * zd[i]);
      }
    });
  }
}

}  // namespace lhtree::base
