// Shares of small nodes, moved towards those of the nodes above them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "predict.hpp"
#include "tree.hpp"

namespace lhtree {

/// What shrinkage reads of a tree, node by node.
struct Shares {
  const double* share;       // [n_nodes] share of targets
  const double* weight_sum;  // [n_nodes] weighted number of rows
};

/// Write the shrunk shares of a tree's nodes, [n_nodes, strengths]. A step from a parent of weight
/// n to its child counts by n / (n + strength). Parents come before their children.
inline void shrink_tree(const ForestView& forest, std::int64_t tree, const Shares& plain,
                        const std::vector<double>& strength, double* shrunk) {
  const std::int64_t root = forest.tree_start[tree];
  const std::int64_t n_nodes = forest.tree_start[tree + 1] - root;
  const std::size_t n_each = strength.size();
  const double* share = plain.share + root;
  std::fill_n(shrunk, n_each, share[0]);
  for (std::int64_t i = 0; i < n_nodes; ++i) {
    const std::int32_t left = forest.left[root + i];
    if (left < 0) continue;
    const double weight = plain.weight_sum[root + i];
    for (std::size_t v = 0; v < n_each; ++v) {
      const double factor = weight / (weight + strength[v]), above = shrunk[i * n_each + v];
      for (const std::int32_t child : {left, left + 1}) {
        const double moved = above + factor * (share[child] - share[i]);
        shrunk[child * n_each + v] =
            strength[v] == 0.0 ? share[child] : std::clamp(moved, 0.0, 1.0);
      }
    }
  }
}

/// Add the votes that all trees would have for some rows if they were shrunk by each of some
/// strengths: rows take the same paths, so they walk once.
template <class T>
void vote_shrunk_rows(const ForestView& forest, const Shares& plain,
                      const std::vector<double>& strength, const T* values, RowRange range,
                      Scaling scaling, const LeftOut& left_out, const std::vector<Votes>& votes,
                      const StopFlag& stop) {
  const Block block =
      scale_rows(values + range.first * forest.n_features, range.size, forest.n_features, scaling);
  const std::size_t n_each = strength.size();
  std::vector<double> shrunk;
  visit_voters(forest, block, range.first, left_out, votes.front().by_margin, stop,
               [&](std::int64_t tree, const std::vector<std::int32_t>& voter,
                   const Answers& answers, const std::vector<double>& normalized) {
                 if (voter.empty()) return;
                 const std::int64_t root = forest.tree_start[tree];
                 shrunk.resize((forest.tree_start[tree + 1] - root) * n_each);
                 shrink_tree(forest, tree, plain, strength, shrunk.data());
                 for (const std::int32_t i : voter) {
                   const std::int32_t leaf = answers.leaf[i];
                   const double line = find_line(forest, root + leaf, block.row(i));
                   for (std::size_t v = 0; v < n_each; ++v)
                     add_vote(votes[v], range.first + i, forest.target[tree],
                              add_line(shrunk[leaf * n_each + v], line), answers.distance[i],
                              normalized[i]);
                 }
               });
}

}  // namespace lhtree
