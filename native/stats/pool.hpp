// Histograms whose memory is used again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "stats/histogram.hpp"

namespace lhtree::stats {

/// Histograms that open nodes keep so that a child's follows by subtraction. A node whose
/// histogram was given away builds those of both children: the sums are the same.
template <class Row>
class HistogramPool {
 public:
  using Histogram = stats::Histogram<Row>;

  HistogramPool(std::int64_t n_places, std::int64_t most_bytes)
      : n_places_(n_places),
        most_(std::max<std::int64_t>(
            2, most_bytes /
                   (n_places * static_cast<std::int64_t>(sizeof(typename Histogram::Sums))))) {}

  Histogram& operator[](std::int64_t number) { return pool_[number]; }
  std::int64_t n_places() const { return n_places_; }
  bool is_exhausted() const {
    return free_.empty() && static_cast<std::int64_t>(pool_.size()) >= most_;
  }
  std::int64_t take() {
    if (free_.empty()) {
      pool_.emplace_back();
      return static_cast<std::int64_t>(pool_.size()) - 1;
    }
    const std::int64_t number = free_.back();
    free_.pop_back();
    return number;
  }
  void give(std::int64_t& number) {
    if (number >= 0) free_.push_back(std::exchange(number, -1));
  }
  void give_all() {
    free_.resize(pool_.size());
    std::iota(free_.begin(), free_.end(), 0);
  }

 private:
  std::int64_t n_places_, most_;
  std::vector<Histogram> pool_;
  std::vector<std::int64_t> free_;
};

}  // namespace lhtree::stats
