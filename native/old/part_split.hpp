// The rows of a part's nodes, divided among their children.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "part_scores.hpp"

namespace lhtree {

/// The rows of the nodes of the next round.
struct SplitRows {
  std::vector<std::uint32_t> row;
  std::vector<double> weight;
  std::vector<std::int64_t> start{0}, middle;
};

/// What becomes of a node: `stays` passes it on as it is; otherwise form `form` (-1: none)
/// splits it, and its sides pass on if they are kept.
struct Fates {
  const std::uint8_t* stays;  // [n_nodes]
  const std::int64_t* form;   // [n_nodes]
  const std::uint8_t* keeps;  // [n_nodes * 2] left, right
  const double* threshold;    // [n_forms]
};

template <class T>
class PartSplitter {
 public:
  PartSplitter(const PartTable<T>& table, const PartNodes& nodes, const Forms& forms,
               const Fates& fates)
      : table_(table), nodes_(nodes), forms_(forms), fates_(fates) {}

  SplitRows run() {
    const std::int64_t n_rows = nodes_.start[nodes_.n_nodes];
    is_left_.assign(n_rows, 0);
    next_.row.resize(n_rows);
    if (nodes_.weight) next_.weight.resize(n_rows);
    Projector<T>(table_, nodes_, forms_)
        .run([&](std::int64_t f, const double* score, std::int64_t begin, std::int64_t n, bool) {
          for (std::int64_t i = 0; i < n; ++i) is_left_[begin + i] = score[i] < fates_.threshold[f];
        });
    for (std::int64_t k = 0; k < nodes_.n_nodes; ++k) {
      const auto everything = [](std::uint8_t) { return true; };
      if (fates_.stays[k]) {
        pass_on(k, everything);
      } else if (fates_.form[k] >= 0) {
        if (fates_.keeps[2 * k]) pass_on(k, [](std::uint8_t is_left) { return is_left != 0; });
        if (fates_.keeps[2 * k + 1]) pass_on(k, [](std::uint8_t is_left) { return is_left == 0; });
      }
    }
    next_.row.resize(n_next_);
    if (nodes_.weight) next_.weight.resize(n_next_);
    return std::move(next_);
  }

 private:
  template <class Take>
  void pass_on(std::int64_t k, const Take& take) {
    sweep(nodes_.start[k], nodes_.middle[k], take);
    next_.middle.push_back(n_next_);
    sweep(nodes_.middle[k], nodes_.start[k + 1], take);
    next_.start.push_back(n_next_);
  }

  /// Copy the rows that are taken; writes all, and goes on behind those that are.
  template <class Take>
  void sweep(std::int64_t begin, std::int64_t end, const Take& take) {
    const std::int64_t n_most = n_next_ + end - begin;
    if (n_most > static_cast<std::int64_t>(next_.row.size())) {
      next_.row.resize(n_most);
      if (nodes_.weight) next_.weight.resize(n_most);
    }
    for (std::int64_t i = begin; i < end; ++i) {
      next_.row[n_next_] = nodes_.row[i];
      if (nodes_.weight) next_.weight[n_next_] = nodes_.weight[i];
      n_next_ += take(is_left_[i]);
    }
  }

  const PartTable<T>& table_;
  const PartNodes& nodes_;
  const Forms& forms_;
  const Fates& fates_;
  std::vector<std::uint8_t> is_left_;
  SplitRows next_;
  std::int64_t n_next_ = 0;  // rows that are passed on so far
};

}  // namespace lhtree
