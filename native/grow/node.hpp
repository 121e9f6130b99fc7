// Nodes of a tree that grows, and what its growth must fulfil.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "split/constraints.hpp"
#include "split/gain.hpp"
#include "split/hyperplanes.hpp"
#include "split/split.hpp"

namespace lhtree::grow {

/// How large a tree may become.
struct TreeSize {
  std::int64_t max_leaf_nodes = 31;
  std::int64_t max_depth = std::numeric_limits<std::int64_t>::max();
};

struct TreeSettings {
  TreeSize size;
  split::Limits limits;
  double hessian_of_row = 1.0;    // the largest that a row of weight one may have, as an integer
  double min_gain = 0.0;          // of a split, in units of the noise
  std::int64_t max_features = 0;  // columns that a node draws for its single splits; 0: all
  split::HyperplaneSettings hyperplanes;
  split::Constraints constraints;
};

/// What differs from tree to tree.
struct TreeDraw {
  std::uint64_t key = 0;
  double noise = 0.0;  // the gain of a split of targets that are noise, on average
  bool has_hyperplanes = true;
};

/// A node of a tree that grows. Its rows lie from `begin` to `end` in the rows of the tree.
template <class Sums>
struct Node {
  std::int64_t begin = 0, end = 0;
  Sums sums;
  std::int64_t depth = 0;
  std::uint64_t key = 0;  // of its draws
  split::Freedom freedom;
  split::Split<Sums> split;
  double rank = 0.0;                     // gain of its best split by a single column
  std::vector<std::uint8_t> takes_part;  // columns that it drew for its single splits; empty: all
  bool is_tried = false;                 // whether hyperplanes were tried
  std::vector<std::uint8_t> goes_left;   // of its rows, if a hyperplane won
  std::int64_t constant = -1;  // where the columns that are constant in it are listed, in forests
  std::int64_t left = -1;       // number of the left child, the right one follows; -1: a leaf
  std::int64_t histogram = -1;  // its position in the pool, while the node is open

  std::int64_t n_rows() const { return end - begin; }
  bool is_open() const { return left < 0 && split.is_found(); }
};

}  // namespace lhtree::grow
