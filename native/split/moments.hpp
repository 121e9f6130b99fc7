// Centred products of the columns of a node with each other and with the gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "base/instructions.hpp"
#include "split/node_columns.hpp"

namespace lhtree::split {

constexpr int short_bits = 15;             // of a gradient
constexpr int direction_weight_bits = 31;  // of the weights of all rows of a node
static_assert(2 * direction_bits + direction_weight_bits < 63, "products of columns fit a word");
static_assert(direction_bits + short_bits + direction_weight_bits < 63, "and with gradients");

class Moments {
 public:
  /// Begin with p columns.
  void start(std::int64_t p) {
    p_ = p;
    weight_ = total_ = 0;
    product_.assign(p * p, 0);
    with_gradient_.assign(p, 0);
    sum_.assign(p, 0);
  }

  /// Add the rows of a batch. `gradient` takes 15 bits; `weight` is null where all are one.
  void add(const ColumnBatch& batch, const std::int16_t* gradient, const std::int64_t* weight) {
    const std::int64_t n = batch.n;
    if (weight) return add_weighted(batch, gradient, weight);
    weight_ += n;
    total_ += sum(gradient, n);
    for (std::int64_t a = 0; a < p_; ++a) {
      const std::int16_t* left = NodeColumns::centered(a, batch);
      sum_[a] += sum(left, n);
      with_gradient_[a] += dot<direction_bits + short_bits>(left, gradient, n);
      for (std::int64_t b = 0; b <= a; ++b)
        product_[a * p_ + b] += dot<2 * direction_bits>(left, NodeColumns::centered(b, batch), n);
    }
  }

  /// Add what was summed of other rows.
  void operator+=(const Moments& other) {
    const auto add = [](std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
      for (std::size_t k = 0; k < to.size(); ++k) to[k] += from[k];
    };
    weight_ += other.weight_;
    total_ += other.total_;
    add(product_, other.product_);
    add(with_gradient_, other.with_gradient_);
    add(sum_, other.sum_);
  }

  /// Make centred products of the sums.
  void finish() {
    moment_.resize(p_ * p_);
    right_.resize(p_);
    for (std::int64_t a = 0; a < p_; ++a) {
      for (std::int64_t b = 0; b <= a; ++b)
        moment_[a * p_ + b] = moment_[b * p_ + a] = center(product_[a * p_ + b], sum_[a], sum_[b]);
      right_[a] = center(with_gradient_[a], sum_[a], total_);
    }
  }

  std::int64_t size() const { return p_; }
  double operator()(std::int64_t a, std::int64_t b) const { return moment_[a * p_ + b]; }
  double with_gradient(std::int64_t a) const { return right_[a]; }
  double weight() const { return static_cast<double>(weight_); }

 private:
  double center(std::int64_t product, std::int64_t a, std::int64_t b) const {
    return static_cast<double>(product) -
           static_cast<double>(a) * static_cast<double>(b) / static_cast<double>(weight_);
  }

  void add_weighted(const ColumnBatch& batch, const std::int16_t* gradient,
                    const std::int64_t* weight) {
    const std::int64_t n = batch.n;
    weighted_.resize(n);
    for (std::int64_t i = 0; i < n; ++i) weight_ += weight[i];
    total_ += dot(gradient, weight, n);
    for (std::int64_t a = 0; a < p_; ++a) {
      const std::int16_t* left = NodeColumns::centered(a, batch);
      for (std::int64_t i = 0; i < n; ++i) weighted_[i] = weight[i] * left[i];
      sum_[a] += dot(left, weight, n);
      with_gradient_[a] += dot(gradient, weighted_.data(), n);
      for (std::int64_t b = 0; b <= a; ++b)
        product_[a * p_ + b] += dot(NodeColumns::centered(b, batch), weighted_.data(), n);
    }
  }

  static std::int64_t sum(const std::int16_t* a, std::int64_t n) {
    std::int64_t result = 0;
    std::int64_t* out = &result;
    base::run_wide([=]() LHTREE_FLAT {
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += a[i];
      *out = sum;
    });
    return result;
  }

  /// The sum of products of `bits` bits; those of a block fit a short word.
  template <int bits>
  static std::int64_t dot(const std::int16_t* a, const std::int16_t* b, std::int64_t n) {
    constexpr std::int64_t block = std::int64_t{1} << (30 - bits);  // a product may be -2**bits
    std::int64_t result = 0;
    std::int64_t* out = &result;
    base::run_wide([=]() LHTREE_FLAT {
      std::int64_t total = 0, begin = 0;
      for (; begin + block <= n; begin += block) {
        std::int32_t sum = 0;
        for (std::int64_t i = 0; i < block; ++i)
          sum += std::int32_t{a[begin + i]} * std::int32_t{b[begin + i]};
        total += sum;
      }
      for (; begin < n; ++begin) total += std::int32_t{a[begin]} * std::int32_t{b[begin]};
      *out = total;
    });
    return result;
  }

  static std::int64_t dot(const std::int16_t* a, const std::int64_t* b, std::int64_t n) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  }

  std::int64_t p_ = 0, weight_ = 0, total_ = 0;
  std::vector<std::int64_t> product_, with_gradient_, sum_, weighted_;
  std::vector<double> moment_, right_;
};

}  // namespace lhtree::split
