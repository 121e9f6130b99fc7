// Log-loss of many classes: a tree separates some classes, drawn at random, from the others, and
// its leaves have a value for every class.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "grow/losses.hpp"
#include "old/pages.hpp"
#include "old/random.hpp"

namespace lhtree::grow {

constexpr std::uint64_t subset_draws = ~std::uint64_t{4};  // never that of a row or column

/// Draw each of two or more things with probability 1/2, by a key; neither none nor all.
inline void draw_subset(std::uint64_t key, std::vector<std::uint8_t>& is_drawn) {
  const std::uint64_t draws = hash64(key, subset_draws);
  const auto k = static_cast<std::int64_t>(is_drawn.size());
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t attempt_key = hash64(draws, attempt);
    std::int64_t n = 0;
    for (std::int64_t c = 0; c < k; ++c)
      n += is_drawn[c] = hash64(attempt_key, static_cast<std::uint64_t>(c)) >> 63;
    if (0 < n && n < k) return;
  }
}

/// Scores are logarithms of probabilities, up to a number that the classes of a row share.
class SoftmaxLoss {
 public:
  static constexpr double hessian_unit = LogisticLoss::hessian_unit;

  explicit SoftmaxLoss(std::int64_t n_classes) : k_(n_classes), is_positive_(n_classes) {}

  double begin_round(const Rows& rows, std::uint64_t key, base::Team&) {
    p_.resize(rows.n * k_);
    draw_subset(key, is_positive_);
    return LogisticLoss::leaf_unit;
  }

  template <class Row>
  void compute(const Rows& rows, std::int64_t begin, std::int64_t end, Row* gradient,
               std::uint64_t* loss) {
    std::vector<double> shares(k_ * lane);
    for (std::int64_t first = begin; first < end; first += lane) {
      const std::int64_t n = std::min(lane, end - first);
      compute_shares(rows, first, n, shares.data(), loss + (first - begin));
      if (!gradient) continue;
      std::int32_t* p = p_.data() + first * k_;
      write_probabilities(shares.data(), n, p);
      for (std::int64_t i = first; i < first + n; ++i, p += k_) {
        std::int64_t sum = 0;
        for (std::int64_t c = 0; c < k_; ++c) sum += is_positive_[c] ? p[c] : 0;
        const std::int64_t g = sum - (is_positive_[rows.y[i]] ? whole : 0);
        gradient[i - begin] = Row::make(std::clamp(g, -most_gradient, most_gradient),
                                        compute_hessian(sum), rows.weight_of(i));
      }
    }
  }

  void write_values(const Rows& rows, const std::uint32_t* row, std::int64_t n, std::int64_t,
                    std::int64_t, double step, double ridge, std::int32_t* result) const {
    std::vector<std::int64_t> g(k_, 0), h(k_, 0);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int32_t* p = p_.data() + row[i] * k_;
      const std::int64_t w = rows.weight_of(row[i]);
      for (std::int64_t c = 0; c < k_; ++c) {
        g[c] += w * p[c];
        h[c] += w * compute_hessian(p[c]);
      }
      g[rows.y[row[i]]] -= w * whole;
    }
    // The scores of a row have one degree of freedom less than there are classes.
    const double share = static_cast<double>(k_ - 1) / static_cast<double>(k_);
    for (std::int64_t c = 0; c < k_; ++c)
      result[c] = compute_newton_value(g[c], h[c], step * share, ridge);
  }

 private:
  static constexpr std::int64_t whole = std::int64_t{1} << stats::gradient_bits;

  /// The hessian of a probability in units of 2**-22.
  static std::int64_t compute_hessian(std::int64_t p) {
    constexpr int shift = 2 * stats::gradient_bits - stats::hessian_bits - 2;
    return std::clamp<std::int64_t>(p * (whole - p) >> shift, 1, most_hessian);
  }

  static constexpr std::int64_t lane = 64;  // rows whose classes are looked at side by side

  /// Write the shares of the classes of n rows, class after class, and the losses of the rows.
  void compute_shares(const Rows& rows, std::int64_t first, std::int64_t n, double* share,
                      std::uint64_t* loss) const {
    std::int64_t most_of[lane];
    double sum_of[lane];
    const std::int64_t k = k_, *score = rows.score + first * k;
    const std::int32_t* y = rows.y + first;
    std::int64_t* most = most_of;
    double* sum = sum_of;
    base::run_wide([=]() LHTREE_FLAT {
      for (std::int64_t i = 0; i < n; ++i) most[i] = score[i * k];
      for (std::int64_t c = 1; c < k; ++c)
        for (std::int64_t i = 0; i < n; ++i) most[i] = std::max(most[i], score[i * k + c]);
      for (std::int64_t i = 0; i < n; ++i) sum[i] = 0.0;
      for (std::int64_t c = 0; c < k; ++c)
        for (std::int64_t i = 0; i < n; ++i) {
          const double e = base::exp(base::to_double(score[i * k + c] - most[i]) * score_unit);
          share[c * lane + i] = e;
          sum[i] = sum[i] + e;
        }
      for (std::int64_t i = 0; i < n; ++i) {
        const double value =
            base::to_double(most[i] - score[i * k + y[i]]) * score_unit + base::log(sum[i]);
        loss[i] = static_cast<std::uint64_t>(
            base::to_integer(base::round_half_up(value * (1.0 / score_unit))));
      }
      for (std::int64_t i = 0; i < n; ++i) sum[i] = 1.0 / sum[i];
      for (std::int64_t c = 0; c < k; ++c)
        for (std::int64_t i = 0; i < n; ++i) share[c * lane + i] = share[c * lane + i] * sum[i];
    });
  }

  /// Write shares as integers, row after row.
  void write_probabilities(const double* share, std::int64_t n, std::int32_t* p) const {
    const std::int64_t k = k_;
    base::run_wide([=]() LHTREE_FLAT {
      for (std::int64_t c = 0; c < k; ++c)
        for (std::int64_t i = 0; i < n; ++i)
          p[i * k + c] = static_cast<std::int32_t>(
              base::round_half_up(share[c * lane + i] * static_cast<double>(whole)));
    });
  }

  std::int64_t k_;
  PageVector<std::int32_t> p_;  // probabilities of all rows, in units of 2**-22
  std::vector<std::uint8_t> is_positive_;
};

}  // namespace lhtree::grow
