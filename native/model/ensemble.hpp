// Grown trees as flat arrays, numbered breadth-first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/columns.hpp"
#include "grow/tree.hpp"

namespace lhtree::model {

/// The nodes of one tree after another. Splits of each kind have arrays of their own, in the
/// order of the nodes.
struct Ensemble {
  std::vector<std::int64_t> tree_start{0};
  std::vector<std::int32_t> left;          // counted from the root; the right child follows; -1
  std::vector<std::int32_t> column;        // of a split by a single column, else -1
  std::vector<std::uint8_t> missing_left;  // of a split by a column of numbers
  std::vector<std::int32_t> value;         // what the leaves add to each output
  std::vector<std::int64_t> weight;        // of its rows, in units of row weights
  std::vector<double> gain;
  std::vector<double> threshold;            // of splits by numbers: x < threshold goes left
  std::vector<std::uint64_t> codes;         // of splits by categories: four words of bits each
  std::vector<std::int64_t> term_start{0};  // of hyperplanes
  std::vector<std::int32_t> feature, fill;
  std::vector<std::int16_t> coefficient;
  std::vector<std::int64_t> cut;  // of hyperplanes: projections below it go left

  /// Append a tree whose nodes are in the order of their growth.
  /// `of_nodes` has what each node adds to each of `n_outputs`.
  template <class Sums, class GetWeight, class GetGain>
  void append(const std::vector<grow::Node<Sums>>& nodes, const std::vector<base::Column>& columns,
              const std::int32_t* of_nodes, std::int64_t n_outputs, const GetWeight& get_weight,
              const GetGain& get_gain) {
    std::vector<std::int64_t> order{0};
    for (std::size_t k = 0; k < order.size(); ++k) {
      const grow::Node<Sums>& node = nodes[order[k]];
      left.push_back(node.left < 0 ? -1 : static_cast<std::int32_t>(order.size()));
      if (node.left >= 0) {
        order.push_back(node.left);
        order.push_back(node.left + 1);
      }
      append_split(node, columns);
      const std::int32_t* first = of_nodes + order[k] * n_outputs;
      if (node.left < 0) value.insert(value.end(), first, first + n_outputs);
      weight.push_back(get_weight(node));
      gain.push_back(node.left < 0 ? 0.0 : get_gain(node));
    }
    tree_start.push_back(static_cast<std::int64_t>(left.size()));
    size_.push_back({value.size(), threshold.size(), codes.size(), cut.size()});
  }

  /// Append the trees of another.
  void append(const Ensemble& other) {
    const auto add = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    const auto add_starts = [](auto& to, const auto& from) {
      const std::int64_t last = to.back();
      for (std::size_t k = 1; k < from.size(); ++k) to.push_back(last + from[k]);
    };
    const Size before{value.size(), threshold.size(), codes.size(), cut.size()};
    for (const Size& each : other.size_)
      size_.push_back({before.value + each.value, before.threshold + each.threshold,
                       before.codes + each.codes, before.cut + each.cut});
    add_starts(tree_start, other.tree_start);
    add_starts(term_start, other.term_start);
    add(left, other.left);
    add(column, other.column);
    add(missing_left, other.missing_left);
    add(value, other.value);
    add(weight, other.weight);
    add(gain, other.gain);
    add(threshold, other.threshold);
    add(codes, other.codes);
    add(feature, other.feature);
    add(fill, other.fill);
    add(coefficient, other.coefficient);
    add(cut, other.cut);
  }

  /// Keep the first trees only.
  void keep(std::int64_t n_trees) {
    const auto n_nodes = static_cast<std::size_t>(tree_start[n_trees]);
    const Size size = n_trees == 0 ? Size{} : size_[n_trees - 1];
    const auto n_terms = static_cast<std::size_t>(term_start[size.cut]);
    tree_start.resize(n_trees + 1);
    left.resize(n_nodes);
    column.resize(n_nodes);
    missing_left.resize(n_nodes);
    value.resize(size.value);
    weight.resize(n_nodes);
    gain.resize(n_nodes);
    threshold.resize(size.threshold);
    codes.resize(size.codes);
    term_start.resize(size.cut + 1);
    feature.resize(n_terms);
    fill.resize(n_terms);
    coefficient.resize(n_terms);
    cut.resize(size.cut);
    size_.resize(n_trees);
  }

 private:
  /// How long some arrays are after a tree.
  struct Size {
    std::size_t value = 0, threshold = 0, codes = 0, cut = 0;
  };
  std::vector<Size> size_;

  template <class Sums>
  void append_split(const grow::Node<Sums>& node, const std::vector<base::Column>& columns) {
    const split::Split<Sums>& split = node.split;
    const bool is_single = node.left >= 0 && split.hyperplane.is_empty();
    column.push_back(is_single ? static_cast<std::int32_t>(split.column) : -1);
    missing_left.push_back(is_single && split.missing_left);
    if (node.left < 0) return;
    if (!is_single) return append_hyperplane(split);
    const base::Column& info = columns[split.column];
    if (info.is_category()) {
      codes.insert(codes.end(), split.codes.word.begin(), split.codes.word.end());
    } else {  // after the last bin: all present values go left
      const bool is_inner = split.cut < static_cast<int>(info.threshold.size());
      threshold.push_back(is_inner ? info.threshold[split.cut]
                                   : std::numeric_limits<double>::infinity());
    }
  }

  template <class Sums>
  void append_hyperplane(const split::Split<Sums>& split) {
    const split::Hyperplane& plane = split.hyperplane;
    feature.insert(feature.end(), plane.column.begin(), plane.column.end());
    fill.insert(fill.end(), plane.fill.begin(), plane.fill.end());
    for (const std::int32_t w : plane.weight) coefficient.push_back(static_cast<std::int16_t>(w));
    term_start.push_back(static_cast<std::int64_t>(feature.size()));
    cut.push_back(split.threshold);
  }
};

}  // namespace lhtree::model
