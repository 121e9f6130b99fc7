// Guesses about rows that pass several splits of a tree one after the other.
//
// The purity rule cuts small pieces off, so most rows pass chains of splits. Up to eight of
// them are asked at once in single precision. Only a side within the error of such a guess is
// found out exactly, and so is the distance from the nearest hyperplane at the end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "block.hpp"
#include "chain_kernels.hpp"
#include "projection_kernels.hpp"
#include "score_kernels.hpp"
#include "tree.hpp"

namespace lhtree {

inline void shorten(double& distance, double gap) { distance = gap < distance ? gap : distance; }

/// The split that a row came nearest to, as far as guesses tell.
struct Nearest {
  static constexpr float far = std::numeric_limits<float>::infinity();

  float first = far;       // distance from it
  float second = far;      // from the second nearest
  std::int32_t node = -1;  // -1: no split was guessed

  void update(float other_first, float other_second, std::int32_t other_node) {
    second = std::min({second, other_second, std::max(first, other_first)});
    // Which of them is nearer is hard to predict, so there is no branch.
    const std::int32_t is_nearer = -static_cast<std::int32_t>(other_first < first);
    node ^= is_nearer & (node ^ other_node);
    first = std::min(first, other_first);
  }
};

/// Whether a block has rows and a forest has splits that chains may help with.
inline bool may_have_chains(const ForestView& forest, const Block& block) {
  if (block.has_missing || block.n_columns > most_rough_columns) return false;
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree)
    if (forest.is_dense_split(forest.tree_start[tree])) return true;
  return false;
}

/// Follows chains of splits with the rows of a block, one tree after the other.
class ChainFollower {
 public:
  static constexpr std::int32_t least_rows = 16;  // for fewer, a chain is not worth its copy

  ChainFollower(const ForestView& forest, const Block& block)
      : forest_(forest),
        block_(block),
        rough_(round_rows(block)),
        nearest_(block.n_rows),
        chain_weight_(block.n_columns * Chain::most),
        passage_(4 * n_places()),
        spare_row_(block.n_rows),
        pointer_(block.n_rows),
        weight_(block.n_rows),
        score_(block.n_rows) {}

  void begin(std::int64_t root) {
    root_ = root;
    std::fill(nearest_.begin(), nearest_.end(), Nearest{});
  }

  /// Make a chain of the splits that most training rows passed from a node on. Returns whether
  /// they are worth it: trees that cut off small pieces have long chains. Where guesses have
  /// decided little, none is: columns with an offset far beyond their spread, for example, leave
  /// nothing to single precision.
  bool find(std::int32_t node) {
    constexpr double least_passed = 2.5;  // splits per row; fewer are faster one by one
    if (4 * n_unsure_ > n_guessed_) return false;
    const auto all = static_cast<double>(forest_.n_samples[root_ + node]);
    double n_passed = 0.0;
    n_links_ = 0;
    while (n_links_ < Chain::most && is_near_split(root_ + node)) {
      link_[n_links_++] = root_ + node;
      n_passed += static_cast<double>(forest_.n_samples[root_ + node]);
      node = static_cast<std::int32_t>(forest_.larger_child(root_, root_ + node) - root_);
    }
    return n_links_ > 1 && n_passed >= least_passed * all;
  }

  /// Sort the rows of the node that was found by where they leave its chain, and call
  /// push(node, begin, end) for each group.
  template <class Push>
  void follow(std::int32_t* row, std::int32_t n, const Push& push) {
    const Chain chain = make_chain();
    const Passages passages = list_passages();
    guess_passages(chain, rough_.value.data(), rough_.error.data(), row, n, passages);
    n_guessed_ += n;
    for (std::int32_t k = 0; k < n; ++k) {
      if (passages.exit[k] < 0.0f) make_sure(chain, row[k], passages, k);
      nearest_[row[k]].update(passages.first[k], passages.second[k],
                              chain.node[static_cast<int>(passages.nearest[k])]);
    }
    std::int32_t end[Chain::most + 1];
    sort_by_exit(passages.exit, row, n, end);
    std::int32_t begin = 0;
    for (int v = 0; v < n_links_; ++v) {
      push(find_child(v, false), begin, end[v]);
      begin = end[v];
    }
    push(find_child(n_links_ - 1, true), begin, n);
  }

  /// Shorten distances by those from the splits that were guessed: the nearest is exact now.
  void complete(std::vector<double>& distance) {
    std::int32_t n = 0;
    for (std::int32_t i = 0; i < block_.n_rows; ++i) {
      const auto [first, second, node] = nearest_[i];
      if (node < 0) continue;
      if (!(second - first > 2.0f * rough_.error[i])) {
        distance[i] = find_distance(i);
        ++n_unsure_;
        continue;
      }
      spare_row_[n] = i;
      pointer_[n] = block_.row(i);
      weight_[n++] = forest_.form(root_ + node).weight;
    }
    const double* end = forest_.weight + forest_.n_all_terms;
    project_each(pointer_.data(), {weight_.data(), block_.n_columns, end}, n, score_.data());
    for (std::int32_t k = 0; k < n; ++k) {
      const std::int32_t i = spare_row_[k];
      const std::int64_t node = root_ + nearest_[i].node;
      shorten(distance[i], find_gap(score_[k], forest_.threshold[node], forest_.norm[node]));
    }
  }

 private:
  std::int64_t n_places() const {  // rows in whole tiles
    return (block_.n_rows + Passages::tile - 1) / Passages::tile * Passages::tile;
  }

  Passages list_passages() {
    float* room = passage_.data();
    const std::int64_t n = n_places();
    return {room, room + n, room + 2 * n, room + 3 * n};
  }

  /// Whether the errors hold for a split. Its norm is at least one if it was grown here; in a
  /// file, it may be so small that it is not the length of the weights.
  bool is_near_split(std::int64_t node) const {
    constexpr double least_norm = 1e-100;
    return forest_.is_dense_split(node) && forest_.norm[node] >= least_norm &&
           std::abs(forest_.threshold[node]) <= rough_.farthest * forest_.norm[node];
  }

  Chain make_chain() {
    Chain chain{block_.n_columns, chain_weight_.data(), {}, {}, {}, {}};
    for (int v = 0; v < n_links_; ++v) prefetch(forest_.form(link_[v]).weight, block_.n_columns);
    for (int v = 0; v < n_links_; ++v) {
      const std::int64_t node = link_[v];
      const bool stays_left = find_child(v, true) == forest_.left[node];
      const double* weight = forest_.form(node).weight;
      const double unit = 1.0 / forest_.norm[node];
      for (std::int64_t j = 0; j < block_.n_columns; ++j)
        chain_weight_[j * Chain::most + v] = static_cast<float>(weight[j] * unit);
      chain.node[v] = static_cast<std::int32_t>(node - root_);
      chain.threshold[v] = static_cast<float>(forest_.threshold[node] * unit);
      chain.if_below[v] = static_cast<float>(stays_left ? Chain::most : v);
      chain.if_not[v] = static_cast<float>(stays_left ? v : Chain::most);
    }
    for (int v = n_links_; v < Chain::most; ++v) {  // no row leaves here or comes near
      chain.threshold[v] = -std::numeric_limits<float>::infinity();
      chain.if_below[v] = chain.if_not[v] = static_cast<float>(Chain::most);
    }
    return chain;
  }

  /// The child of a split of the chain in which the next one is, or the other child.
  std::int32_t find_child(int v, bool is_next) const {
    const std::int32_t left = forest_.left[link_[v]];
    const bool next_is_left = forest_.larger_child(root_, link_[v]) == root_ + left;
    return left + (next_is_left != is_next);
  }

  /// Find the passage of row i, whose gaps may have the wrong signs, as exactly as needed.
  void make_sure(const Chain& chain, std::int32_t i, Passages passages, std::int32_t k) {
    constexpr double least = 1e-37, most = 1e37;  // as floats, neither 0 nor infinite
    float gap[Chain::most];
    guess_gaps(chain, rough_.value.data() + i * block_.n_columns, gap);
    ++n_unsure_;
    for (int v = 0; v < n_links_; ++v) {
      if (!(std::abs(gap[v]) > rough_.error[i])) {
        const double score = project_row(link_[v], i), threshold = forest_.threshold[link_[v]];
        const double distance = find_gap(score, threshold, forest_.norm[link_[v]]);
        const auto size = static_cast<float>(std::clamp(distance, least, most));
        gap[v] = score < threshold ? -size : size;
      }
      if ((gap[v] < 0.0f ? chain.if_below : chain.if_not)[v] < Chain::most) break;
    }
    const Passage passage = find_passage(chain, gap);
    passages.exit[k] = passage.exit;
    passages.nearest[k] = passage.nearest;
    passages.first[k] = passage.first;
    passages.second[k] = passage.second;
  }

  /// Sort rows by where they leave the chain, each group in its order, and write its end.
  ///
  /// A counter waits for its last change, and most rows have the same exit: quarters of the
  /// rows are counted side by side.
  void sort_by_exit(const float* exit, std::int32_t* row, std::int32_t n, std::int32_t* end) {
    constexpr int n_quarters = 4;
    const std::int32_t size = n / n_quarters;
    std::int32_t place[n_quarters][Chain::most + 1] = {};
    const auto visit = [&](const auto& look) {
      for (std::int32_t k = 0; k < size; ++k)
        for (int q = 0; q < n_quarters; ++q)
          look(place[q][static_cast<int>(exit[q * size + k])], q * size + k);
      for (std::int32_t k = n_quarters * size; k < n; ++k)
        look(place[n_quarters - 1][static_cast<int>(exit[k])], k);
    };
    visit([](std::int32_t& count, std::int32_t) { ++count; });
    std::int32_t begin = 0;
    for (int v = 0; v <= Chain::most; ++v) {
      for (auto& quarter : place) begin += std::exchange(quarter[v], begin);
      end[v] = begin;
    }
    visit([&](std::int32_t& next, std::int32_t k) { spare_row_[next++] = row[k]; });
    std::copy_n(spare_row_.data(), n, row);
  }

  double project_row(std::int64_t node, std::int64_t i) const {
    const double* row = block_.row(i);
    double score;
    project(&row, 1, forest_.form(node), Place::cached, &score);
    return score;
  }

  /// The distance of a row from the nearest hyperplane of its path.
  double find_distance(std::int64_t i) const {
    double distance = std::numeric_limits<double>::infinity();
    for (std::int64_t node = root_; forest_.left[node] >= 0;) {
      const double score = project_row(node, i), threshold = forest_.threshold[node];
      shorten(distance, find_gap(score, threshold, forest_.norm[node]));
      node = root_ + forest_.left[node] + !(score < threshold);
    }
    return distance;
  }

  const ForestView& forest_;
  const Block& block_;
  RoughRows rough_;
  std::vector<Nearest> nearest_;  // by row: of the splits that were guessed
  std::vector<float> chain_weight_;
  std::vector<float> passage_;           // the four parts of passages
  std::vector<std::int32_t> spare_row_;  // rows on their way to another place
  std::vector<const double*> pointer_, weight_;
  std::vector<double> score_;
  std::int64_t root_ = 0;
  std::int64_t link_[Chain::most] = {};  // the nodes of the chain
  int n_links_ = 0;
  std::int64_t n_guessed_ = 0, n_unsure_ = 0;  // chains that rows passed, and that did not decide
};

}  // namespace lhtree
