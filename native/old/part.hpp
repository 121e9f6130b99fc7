// One part of the rows of a table, for growing where no process holds all rows.
//
// A part knows which of its rows are in which node: positions of the rows, node after
// node, targets first. What it tells of a node are sums, which merge by addition, and
// ends, which merge by the maximum: lower ends are stored negated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "score_kernels.hpp"
#include "sum_kernels.hpp"

namespace lhtree {

/// Raw rows with any strides, read in the units of the trees.
template <class T>
struct PartTable {
  const T* value;
  std::int64_t row_stride, column_stride;
  std::int64_t n_rows, n_columns;
  const double* mean;
  const double* deviation;

  /// Column j of `n` rows.
  void gather(std::int64_t j, const std::uint32_t* row, std::int64_t n, double* out) const {
    const T* column = value + j * column_stride;
    for (std::int64_t i = 0; i < n; ++i) out[i] = column[row[i] * row_stride];
    if (mean[j] != 0.0 || deviation[j] != 1.0) standardize_values(out, n, mean[j], deviation[j]);
  }
};

/// The rows of a part's nodes.
struct PartNodes {
  const std::uint32_t* row;    // positions in the part
  const double* weight;        // of each entry of `row`, or null: every row counts once
  const std::int64_t* start;   // [n_nodes + 1] node k owns row[start[k]] ... row[start[k + 1]]
  const std::int64_t* middle;  // [n_nodes] its targets end here
  std::int64_t n_nodes;

  const double* weight_at(std::int64_t i) const { return weight ? weight + i : nullptr; }
};

/// What merges over parts.
struct PartSums {
  std::vector<double> sum, end;
};

inline constexpr double lowest_end = -std::numeric_limits<double>::infinity();
inline constexpr std::int64_t rows_per_piece = 128;  // gathered columns stay in a fast cache

/// Call visit(begin, n, is_target) for the pieces of a node's rows.
template <class Visit>
void visit_pieces(const PartNodes& nodes, std::int64_t k, const Visit& visit) {
  const auto sweep = [&](std::int64_t begin, std::int64_t end, bool is_target) {
    for (; begin < end; begin += rows_per_piece)
      visit(begin, std::min(rows_per_piece, end - begin), is_target);
  };
  sweep(nodes.start[k], nodes.middle[k], true);
  sweep(nodes.middle[k], nodes.start[k + 1], false);
}

/// The columns that each node asks for, and the points about which they are summed.
struct ColumnRequest {
  const std::int64_t* start;  // [n_nodes + 1]
  const std::int32_t* column;
  const double* origin;
  bool with_products;

  std::int64_t count(std::int64_t k) const { return start[k + 1] - start[k]; }
  std::int64_t count_sums(std::int64_t k) const {
    const std::int64_t p = count(k);
    return p == 0 ? 0 : 3 * p + (with_products ? p * (p - 1) / 2 : 0);
  }
};

/// Sums of the columns of one node; keeps its buffers between nodes.
template <class T>
class NodeMeter {
 public:
  NodeMeter(const PartTable<T>& table, const PartNodes& nodes, const ColumnRequest& request)
      : table_(table), nodes_(nodes), request_(request) {}

  void run(std::int64_t k, double* sum, double* end) {
    p_ = request_.count(k);
    column_ = request_.column + request_.start[k];
    origin_ = request_.origin + request_.start[k];
    value_.resize(p_ * rows_per_piece);
    product_.assign(p_ * p_, 0.0);
    visit_pieces(nodes_, k, [&](std::int64_t begin, std::int64_t n, bool is_target) {
      add_columns(begin, n, sum + (is_target ? 0 : 1), sum + 2, end);
      if (request_.with_products) add_products(begin, n);
    });
    double* next = sum + 3 * p_;
    for (std::int64_t i = 0; request_.with_products && i < p_; ++i)
      next = std::copy_n(product_.data() + i * p_, i, next);
  }

 private:
  double* value(std::int64_t i) { return value_.data() + i * rows_per_piece; }

  void add_columns(std::int64_t begin, std::int64_t n, double* sum, double* square, double* end) {
    for (std::int64_t i = 0; i < p_; ++i) {
      table_.gather(column_[i], nodes_.row + begin, n, value(i));
      sum[3 * i] += add_values(value(i), nodes_.weight_at(begin), n, origin_[i], square[3 * i]);
      const Extremes extremes = find_extremes(value(i), n);
      end[2 * i] = std::max(end[2 * i], -extremes.min);
      end[2 * i + 1] = std::max(end[2 * i + 1], extremes.max);
    }
  }

  /// Uses up the values of the piece.
  void add_products(std::int64_t begin, std::int64_t n) {
    const double* weight = nodes_.weight_at(begin);
    factor_.clear();
    weighted_.resize(weight ? p_ * rows_per_piece : 0);
    for (std::int64_t i = 0; i < p_; ++i) {
      double* shifted = value(i);
      for (std::int64_t r = 0; r < n; ++r) shifted[r] -= origin_[i];
      for (std::int64_t r = n; r < padded(n); ++r) shifted[r] = 0.0;
      factor_.push_back(shifted);
    }
    weighted_factor_ = factor_;
    for (std::int64_t i = 0; weight && i < p_; ++i) {
      double* product = weighted_.data() + i * rows_per_piece;
      for (std::int64_t r = 0; r < n; ++r) product[r] = weight[r] * factor_[i][r];
      for (std::int64_t r = n; r < padded(n); ++r) product[r] = 0.0;
      weighted_factor_[i] = product;
    }
    multiply_columns(weighted_factor_.data(), factor_.data(), p_, padded(n), product_.data());
  }

  const PartTable<T>& table_;
  const PartNodes& nodes_;
  const ColumnRequest& request_;
  std::int64_t p_ = 0;
  const std::int32_t* column_ = nullptr;
  const double* origin_ = nullptr;
  std::vector<double> value_, weighted_, product_;
  std::vector<const double*> factor_, weighted_factor_;
};

/// For each column of each node: sums of the targets and of the rest, sum of squares, all
/// about its origin; then the products of all pairs of columns, as a lower triangle
/// without its diagonal. The ends are those of each column.
template <class T>
PartSums measure_nodes(const PartTable<T>& table, const PartNodes& nodes,
                       const ColumnRequest& request) {
  std::int64_t n_sums = 0;
  for (std::int64_t k = 0; k < nodes.n_nodes; ++k) n_sums += request.count_sums(k);
  PartSums sums{std::vector<double>(n_sums, 0.0),
                std::vector<double>(2 * request.start[nodes.n_nodes], lowest_end)};
  NodeMeter<T> meter(table, nodes, request);
  double* sum = sums.sum.data();
  for (std::int64_t k = 0; k < nodes.n_nodes; ++k) {
    if (request.count(k) == 0) continue;
    meter.run(k, sum, sums.end.data() + 2 * request.start[k]);
    sum += request.count_sums(k);
  }
  return sums;
}

/// Sums and sums of squares of all columns about `origin`, in units of `unit`.
template <class T>
PartSums sum_columns(const PartTable<T>& table, const std::uint32_t* row, const double* weight,
                     std::int64_t n_rows) {
  PartSums sums{std::vector<double>(2 * table.n_columns, 0.0), {}};
  double value[rows_per_piece];
  for (std::int64_t begin = 0; begin < n_rows; begin += rows_per_piece) {
    const std::int64_t n = std::min(rows_per_piece, n_rows - begin);
    for (std::int64_t j = 0; j < table.n_columns; ++j) {
      table.gather(j, row + begin, n, value);
      sums.sum[2 * j] +=
          add_values(value, weight ? weight + begin : nullptr, n, 0.0, sums.sum[2 * j + 1]);
    }
  }
  return sums;
}

}  // namespace lhtree
