// Rows on their way down the trees of a finished forest.
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
#include "stop.hpp"
#include "tree.hpp"

namespace lhtree {

/// The split that a row came nearest to, as far as guesses tell.
struct Nearest {
  float first;        // distance from it
  float second;       // from the second nearest
  std::int32_t node;  // -1: no split was guessed
};

/// What one tree says of each row of a block.
struct Answers {
  std::vector<std::int32_t> leaf;
  std::vector<double> membership;
  std::vector<double> distance;  // to the nearest hyperplane of the path; 0 if there is none
};

/// Membership of a row in the target class of its leaf.
inline double find_membership(const ForestView& forest, std::int64_t leaf, const double* row) {
  const FormView line = forest.form(leaf);
  const double share = forest.threshold[leaf];
  if (line.n_terms == 0) return share;
  const double value = share + project_centered(row, line, forest.center + forest.start[leaf]);
  // Infinite parts of both signs, far from all training rows, say nothing.
  return std::isnan(value) ? share : std::clamp(value, 0.0, 1.0);
}

/// Which distances a walk finds.
enum class Distance { none, plain, normalized };

inline void shorten(double& distance, double gap) { distance = gap < distance ? gap : distance; }

/// Walks blocks of rows down the trees; keeps its buffers between trees.
///
/// All rows that reach a node are projected together, so that its weights are
/// read once per block. Where most rows pass several dense splits one after the other, all of
/// these are asked at once in single precision. Only a side within the error of such a guess
/// is found out exactly, and so is the distance from the nearest hyperplane at the end.
class Walker {
 public:
  Walker(const ForestView& forest, const Block& block, Distance distance)
      : forest_(forest),
        block_(block),
        distance_(distance),
        pointer_(block.n_rows),
        score_(block.n_rows),
        gap_(block.n_rows),
        spare_row_(block.n_rows) {
    answers.leaf.resize(block.n_rows);
    answers.membership.resize(block.n_rows);
    answers.distance.resize(block.n_rows);
    if (!has_chains()) return;
    rough_ = round_rows(block);
    nearest_.resize(block.n_rows);
    chain_weight_.resize(forest.n_features * Chain::most);
    rough_gap_.resize(block.n_rows * Chain::most);
    form_.resize(block.n_rows);
    error_.resize(block.n_rows);
    passage_.resize(block.n_rows);
  }

  Answers answers;

  /// Fill `answers` for the given rows of the block; afterwards they are grouped by leaf.
  void walk(std::int64_t tree, std::vector<std::int32_t>& row, const StopFlag& stop) {
    root_ = forest_.tree_start[tree];
    const auto n_rows = static_cast<std::int32_t>(row.size());
    if (n_rows == 0) return;
    const bool splits = forest_.left[root_] >= 0;
    constexpr double far = std::numeric_limits<double>::infinity();
    constexpr Nearest no_nearest{static_cast<float>(far), static_cast<float>(far), -1};
    std::fill(answers.distance.begin(), answers.distance.end(), splits ? far : 0.0);
    std::fill(nearest_.begin(), nearest_.end(), no_nearest);
    stack_.assign(1, Span{0, 0, n_rows});
    while (!stack_.empty()) {
      check_stop(stop);
      const Span span = stack_.back();
      stack_.pop_back();
      if (forest_.left[root_ + span.node] < 0)
        arrive(span, row.data());
      else
        descend(span, row.data());
    }
    if (!nearest_.empty() && distance_ != Distance::none) complete_distances();
  }

 private:
  struct Span {
    std::int32_t node, begin, end;
  };
  static constexpr std::int32_t few = 512;  // so many rows of 100 columns stay in a fast cache
  static constexpr std::int32_t least_rows = 16;  // for fewer, a chain is not worth its copy

  /// Whether guesses can help. They are of normalised distances.
  bool has_chains() const {
    if (distance_ == Distance::plain || block_.has_missing || block_.n_rows < least_rows ||
        block_.n_columns > most_rough_columns)
      return false;
    for (std::int64_t tree = 0; tree < forest_.n_trees; ++tree)
      if (forest_.is_dense_split(forest_.tree_start[tree])) return true;
    return false;
  }

  /// Whether guesses have decided: columns with an offset far beyond their spread, for example,
  /// leave nothing to single precision.
  bool is_worth_guessing() const { return !nearest_.empty() && 4 * n_unsure_ <= n_guessed_; }

  void arrive(const Span& span, const std::int32_t* row) {
    const std::int64_t leaf = root_ + span.node;
    const bool is_constant = forest_.start[leaf] == forest_.start[leaf + 1];
    for (std::int32_t k = span.begin; k < span.end; ++k) {
      const std::int32_t i = row[k];
      answers.leaf[i] = span.node;
      answers.membership[i] =
          is_constant ? forest_.threshold[leaf] : find_membership(forest_, leaf, block_.row(i));
    }
  }

  void descend(const Span& span, std::int32_t* row) {
    if (is_worth_guessing() && span.end - span.begin >= least_rows && find_chain(span.node))
      follow(span, row);
    else
      split(span, row);
  }

  /// Move the rows of a node to its children.
  void split(const Span& span, std::int32_t* row) {
    const std::int64_t node = root_ + span.node;
    const std::int32_t n = span.end - span.begin, left = forest_.left[node];
    row += span.begin;
    for (std::int32_t k = 0; k < n; ++k) pointer_[k] = block_.row(row[k]);
    const Place place = n > few ? Place::scattered : Place::cached;
    project(pointer_.data(), n, forest_.form(node, block_.has_missing), place, score_.data());
    const double threshold = forest_.threshold[node];
    const double norm = distance_ == Distance::plain ? 1.0 : forest_.norm[node];
    find_gaps(score_.data(), n, threshold, norm, gap_.data());
    for (std::int32_t k = 0; k < n; ++k) shorten(answers.distance[row[k]], gap_[k]);
    const auto n_left =
        static_cast<std::int32_t>(divide_rows(row, n, score_.data(), threshold, spare_row_.data()));
    push({left + 1, span.begin + n_left, span.end});
    push({left, span.begin, span.begin + n_left});
  }

  /// Make a chain of the splits that most training rows passed from a node on. Returns whether
  /// they are worth it: trees that cut off small pieces have long chains.
  bool find_chain(std::int32_t node) {
    constexpr double least_passed = 2.5;  // splits per row; fewer are faster one by one
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

  /// Move the rows of a node to where they leave the chain that begins there.
  void follow(const Span& span, std::int32_t* row) {
    const Chain chain = make_chain();
    const std::int32_t n = span.end - span.begin;
    row += span.begin;
    for (std::int32_t k = 0; k < n; ++k) error_[k] = rough_.error[row[k]];
    guess_gaps(chain, rough_.value.data(), row, n, rough_gap_.data());
    find_passages(chain, rough_gap_.data(), error_.data(), n, passage_.data());
    n_guessed_ += n;
    for (std::int32_t k = 0; k < n; ++k) {
      if (passage_[k].exit < 0.0f) make_sure(chain, row[k], k);
      update(nearest_[row[k]], chain, passage_[k]);
    }
    std::int32_t end[Chain::most + 1];
    sort_by_exit(row, n, end);
    std::int32_t begin = span.begin;
    for (int v = 0; v < n_links_; ++v) {
      push({find_child(v, false), begin, span.begin + end[v]});
      begin = span.begin + end[v];
    }
    push({find_child(n_links_ - 1, true), begin, span.end});
  }

  /// Sort rows by where they leave the chain, each group in its order, and write its end.
  void sort_by_exit(std::int32_t* row, std::int32_t n, std::int32_t* end) {
    const auto exit = [this](std::int32_t k) { return static_cast<int>(passage_[k].exit); };
    std::fill_n(end, Chain::most + 1, 0);
    for (std::int32_t k = 0; k < n; ++k) ++end[exit(k)];
    std::int32_t begin = 0;
    for (int v = 0; v <= Chain::most; ++v) begin += std::exchange(end[v], begin);
    for (std::int32_t k = 0; k < n; ++k) spare_row_[end[exit(k)]++] = row[k];
    std::copy_n(spare_row_.data(), n, row);
  }

  /// The child of a split of the chain in which the next one is, or the other child.
  std::int32_t find_child(int v, bool is_next) const {
    const std::int32_t left = forest_.left[link_[v]];
    const bool next_is_left = forest_.larger_child(root_, link_[v]) == root_ + left;
    return left + (next_is_left != is_next);
  }

  /// Replace gaps of row i that may have the wrong sign, as far as it gets.
  void make_sure(const Chain& chain, std::int32_t i, std::int32_t k) {
    constexpr double least = 1e-37, most = 1e37;  // as floats, neither 0 nor infinite
    float* gap = rough_gap_.data() + k * Chain::most;
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
    constexpr float no_error = -1.0f;
    find_passages(chain, gap, &no_error, 1, &passage_[k]);
  }

  static void update(Nearest& nearest, const Chain& chain, const Passage& passage) {
    const float farther = std::max(nearest.first, passage.first);
    nearest.second = std::min({nearest.second, passage.second, farther});
    // Which of them is nearer is hard to predict, so there is no branch.
    const std::int32_t is_nearer = -static_cast<std::int32_t>(passage.first < nearest.first);
    const std::int32_t node = chain.node[static_cast<int>(passage.nearest)];
    nearest.node ^= is_nearer & (nearest.node ^ node);
    nearest.first = std::min(nearest.first, passage.first);
  }

  double project_row(std::int64_t node, std::int64_t i) const {
    const double* row = block_.row(i);
    double score;
    project(&row, 1, forest_.form(node, block_.has_missing), Place::cached, &score);
    return score;
  }

  void push(const Span& span) {
    if (span.begin == span.end) return;
    const FormView form = forest_.form(root_ + span.node);
    prefetch(form.weight, form.n_terms);
    stack_.push_back(span);
  }

  /// Distances from the splits that were only guessed: the nearest of them is exact now.
  void complete_distances() {
    std::int32_t n = 0;
    for (std::int32_t i = 0; i < block_.n_rows; ++i) {
      const auto [first, second, node] = nearest_[i];
      if (node < 0) continue;
      if (!(second - first > 2.0f * rough_.error[i])) {
        answers.distance[i] = find_distance(i);
        ++n_unsure_;
        continue;
      }
      spare_row_[n] = i;
      pointer_[n] = block_.row(i);
      form_[n++] = forest_.form(root_ + node);
    }
    project_each(pointer_.data(), form_.data(), n, score_.data());
    for (std::int32_t k = 0; k < n; ++k) {
      const std::int32_t i = spare_row_[k];
      const std::int64_t node = root_ + nearest_[i].node;
      shorten(answers.distance[i],
              find_gap(score_[k], forest_.threshold[node], forest_.norm[node]));
    }
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
  Distance distance_;
  std::int64_t root_ = 0;
  std::vector<Span> stack_;
  std::vector<const double*> pointer_;
  std::vector<double> score_, gap_;
  std::vector<std::int32_t> spare_row_;  // rows on their way to another place
  // Chains; all of these are empty where there are none.
  RoughRows rough_;
  std::vector<Nearest> nearest_;  // by row: of the splits that were guessed
  std::vector<float> chain_weight_;
  std::vector<float> rough_gap_;
  std::vector<FormView> form_;
  std::vector<float> error_;
  std::vector<Passage> passage_;
  std::int64_t link_[Chain::most] = {};  // the nodes of the chain
  int n_links_ = 0;
  std::int64_t n_guessed_ = 0, n_unsure_ = 0;  // chains that rows passed, and that did not decide
};

}  // namespace lhtree
