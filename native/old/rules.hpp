// How one tree grows: its parameters, and what a node's split is made of.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "column_room.hpp"
#include "pages.hpp"
#include "score_kernels.hpp"
#include "tree.hpp"

namespace lhtree {

/// What the weights of a hyperplane are made of; see contrast.hpp.
enum class Contrast : std::int8_t { mean = 0, standardized = 1, fisher = 2 };

/// What chooses the constant that cuts the projections; see threshold.hpp.
enum class Cut : std::int8_t { purity = 0, gini = 1 };

/// The parameters of one tree.
struct Rules {
  Contrast contrast = Contrast::mean;
  Cut cut = Cut::purity;
  double alpha = 0.0;
  double beta = 0.0;
  double gamma = 2.0;
  double min_samples_split = 2.0;
  std::int64_t max_depth = std::numeric_limits<std::int64_t>::max();
  double min_weight_fraction_leaf = 0.0;
  double min_samples_leaf = 0.0;        // least weight of a side of a split; 0: any
  std::int64_t max_leaf_nodes = 0;      // 0: no limit
  double ccp_alpha = 0.0;               // links that are no stronger are cut
  std::int64_t n_columns = 0;           // columns drawn at a node; 0: all
  bool axes = false;                    // whether each of them is tried alone
  std::int64_t n_planes = 1;            // contrasts tried: over all of them, halves, quarters, ...
  std::int64_t n_columns_per_tree = 0;  // columns drawn per tree; 0: all

  /// Whether splits may become leaves after the tree has grown.
  bool prunes() const { return max_leaf_nodes > 0 || ccp_alpha > 0.0; }

  /// Whether a node has one candidate, over all columns.
  bool is_dense(std::int64_t n_features) const {
    return !axes && n_planes == 1 && contrast != Contrast::fisher &&
           (n_columns == 0 || n_columns >= n_features);
  }
};

/// The terms of a split or leaf, columns ascending.
struct Terms {
  std::vector<std::int32_t> feature;
  std::vector<double> weight;
  std::vector<double> center;     // mean of the column in the node
  std::vector<double> deviation;  // its deviation there

  std::int64_t size() const { return static_cast<std::int64_t>(feature.size()); }

  void clear() {
    feature.clear();
    weight.clear();
    center.clear();
    deviation.clear();
  }

  void add(std::int64_t column, double value, double mean, double variance) {
    feature.push_back(static_cast<std::int32_t>(column));
    weight.push_back(value);
    center.push_back(mean);
    // Only explanations read it: the digits of a float do, and make pickles smaller.
    const double root = std::sqrt(std::max(variance, 0.0));
    const auto rounded = static_cast<float>(root);
    deviation.push_back(std::isnormal(rounded) ? static_cast<double>(rounded) : root);
  }
};

/// A constant that cuts the projections, and the rule that chose it.
struct Threshold {
  double value = 0.0;
  Rule rule = Rule::leaf;
  double impurity = 0.0;  // of the cut; only where candidates are compared
};

/// One way to split a node.
struct Split {
  Terms terms;
  Threshold threshold;
  Extremes target{}, rest{};  // of the projections
  // Projections of the rows that were cut: targets, then the rest. Not of those of candidates.
  PageVector<double> score;
};

/// Where nodes are split, one at a time: growers that take turns share it.
struct Bench {
  Split split;
  PageVector<std::uint8_t> is_left;  // 1: the row goes to the left of the split, 0: to the right
  // Places in the node of rows to be projected, until a split is found; then what goes to the
  // right: the rows, and after them the bits of what is known of them. More arrays would take
  // memory in large nodes.
  PageVector<std::uint32_t> number;
  std::int64_t n_listed = 0;  // such places
  ColumnRoom columns;         // for splitters that gather them

  /// Divide the node's `n` rows by their projections.
  void divide(const double* score, std::int64_t n) {
    is_left.resize(n);
    const double threshold = split.threshold.value;
    std::uint8_t* side = is_left.data();  // a byte may be part of anything: it would be read anew
    for (std::int64_t i = 0; i < n; ++i) side[i] = score[i] < threshold;
  }
};

}  // namespace lhtree
