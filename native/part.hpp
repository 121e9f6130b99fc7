// One part of the rows of a table, for growing where no process holds all rows.
//
// A part knows which of its rows are in which node: positions of the rows, node after
// node, targets first. What it tells of a node are sums, which merge by addition, and
// ends, which merge by the maximum: lower ends are stored negated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels.hpp"

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
    const double center = mean[j], unit = deviation[j];
    for (std::int64_t i = 0; i < n; ++i) out[i] = (column[row[i] * row_stride] - center) / unit;
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
inline constexpr std::int64_t rows_per_piece = 256;  // gathered columns stay in a fast cache

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

/// Linear forms, one after the other, and the node that each projects.
struct Forms {
  std::int64_t n_forms;
  const std::int64_t* node;   // [n_forms] ascending
  const std::int64_t* start;  // [n_forms + 1] form f owns the terms start[f] ... start[f + 1]
  const std::int32_t* feature;
  const double* weight;

  FormView view(std::int64_t f) const {
    return {feature + start[f], weight + start[f], start[f + 1] - start[f], false};
  }
};

/// Projects the rows of nodes piece by piece; columns are gathered once for all forms.
template <class T>
class Projector {
 public:
  Projector(const PartTable<T>& table, const PartNodes& nodes, const Forms& forms)
      : table_(table), nodes_(nodes), forms_(forms), place_(table.n_columns, -1) {}

  /// Call visit(form, score, begin, n, is_target) for all pieces of all forms.
  template <class Visit>
  void run(const Visit& visit) {
    for (std::int64_t first = 0, last; first < forms_.n_forms; first = last) {
      last = first;
      while (last < forms_.n_forms && forms_.node[last] == forms_.node[first]) ++last;
      list_columns(first, last);
      visit_pieces(
          nodes_, forms_.node[first], [&](std::int64_t begin, std::int64_t n, bool is_target) {
            for (std::size_t c = 0; c < column_.size(); ++c)
              table_.gather(column_[c], nodes_.row + begin, n, buffer_.data() + c * rows_per_piece);
            for (std::int64_t f = first; f < last; ++f)
              visit(f, project(f, n), begin, n, is_target);
          });
      for (const std::int32_t j : column_) place_[j] = -1;
    }
  }

 private:
  void list_columns(std::int64_t first, std::int64_t last) {
    column_.clear();
    for (std::int64_t t = forms_.start[first]; t < forms_.start[last]; ++t) {
      const std::int32_t j = forms_.feature[t];
      if (place_[j] >= 0) continue;
      place_[j] = static_cast<std::int64_t>(column_.size());
      column_.push_back(j);
    }
    buffer_.resize(column_.size() * rows_per_piece);
  }

  const double* project(std::int64_t f, std::int64_t n) {
    const FormView form = forms_.view(f);
    term_.clear();
    for (std::int64_t t = 0; t < form.n_terms; ++t)
      term_.push_back(buffer_.data() + place_[form.feature[t]] * rows_per_piece);
    if (form.n_terms == 1 && form.weight[0] == 1.0) return term_[0];
    project_columns(term_.data(), n, form, score_);
    return score_;
  }

  const PartTable<T>& table_;
  const PartNodes& nodes_;
  const Forms& forms_;
  std::vector<std::int64_t> place_;  // of each column in `column_`, or -1
  std::vector<std::int32_t> column_;
  std::vector<double> buffer_;
  std::vector<const double*> term_;
  double score_[rows_per_piece];
};

/// Ranges of projections that are cut into bins of equal width.
struct Segments {
  const std::int64_t* start;  // [n_forms + 1] form f owns the segments start[f] ... start[f + 1]
  const double* low;          // ascending within a form
  const double* high;
  const std::int64_t* bin_start;  // [n_segments + 1] first bin of each
  bool is_whole;                  // one segment per form, which takes rows beyond its ends too
};

/// Counts per bin: weights of the targets and of the rest, and their numbers if rows weigh
/// differently. The ends are those of the projections in each bin, then those of each form:
/// targets, rest.
template <class T>
PartSums count_bins(const PartTable<T>& table, const PartNodes& nodes, const Forms& forms,
                    const Segments& segments) {
  const std::int64_t width = nodes.weight ? 4 : 2;
  const std::int64_t n_bins = segments.bin_start[segments.start[forms.n_forms]];
  PartSums sums{std::vector<double>(n_bins * width, 0.0),
                std::vector<double>(2 * n_bins + 4 * forms.n_forms, lowest_end)};
  double* form_end = sums.end.data() + 2 * n_bins;
  const auto add = [&](std::int64_t bin, double score, std::int64_t i, int side) {
    double* sum = sums.sum.data() + bin * width;
    sum[side] += nodes.weight ? nodes.weight[i] : 1.0;
    if (nodes.weight) sum[side + 2] += 1.0;
    double* end = sums.end.data() + 2 * bin;
    end[0] = std::max(end[0], -score);
    end[1] = std::max(end[1], score);
  };
  Projector<T>(table, nodes, forms)
      .run([&](std::int64_t f, const double* score, std::int64_t begin, std::int64_t n,
               bool is_target) {
        const int side = is_target ? 0 : 1;
        double* end = form_end + 4 * f + 2 * side;
        const Extremes extremes = find_extremes(score, n);
        end[0] = std::max(end[0], -extremes.min);
        end[1] = std::max(end[1], extremes.max);
        const std::int64_t first = segments.start[f], last = segments.start[f + 1];
        if (first == last) return;
        for (std::int64_t i = 0; i < n; ++i) {
          const double* upper =
              std::upper_bound(segments.low + first, segments.low + last, score[i]);
          const std::int64_t s = segments.is_whole ? first : (upper - segments.low) - 1;
          if (s < first || (!segments.is_whole && score[i] > segments.high[s])) continue;
          const std::int64_t count = segments.bin_start[s + 1] - segments.bin_start[s];
          double scale = static_cast<double>(count) / (segments.high[s] - segments.low[s]);
          if (!std::isfinite(scale) || !(scale > 0.0)) scale = 0.0;
          const double place = (score[i] - segments.low[s]) * scale;
          const auto bin =
              static_cast<std::int64_t>(std::clamp(place, 0.0, static_cast<double>(count - 1)));
          add(segments.bin_start[s] + bin, score[i], begin + i, side);
        }
      });
  return sums;
}

/// For each threshold of each form the weights on its left: targets, rest, and their
/// numbers if rows weigh differently.
template <class T>
PartSums sum_below(const PartTable<T>& table, const PartNodes& nodes, const Forms& forms,
                   const double* threshold, std::int64_t n_thresholds) {
  const std::int64_t width = nodes.weight ? 4 : 2;
  PartSums sums{std::vector<double>(forms.n_forms * n_thresholds * width, 0.0), {}};
  Projector<T>(table, nodes, forms)
      .run([&](std::int64_t f, const double* score, std::int64_t begin, std::int64_t n,
               bool is_target) {
        for (std::int64_t t = 0; t < n_thresholds; ++t) {
          const double limit = threshold[f * n_thresholds + t];
          double weight = 0.0;
          std::int64_t count = 0;
          for (std::int64_t i = 0; i < n; ++i) {
            if (!(score[i] < limit)) continue;
            ++count;
            if (nodes.weight) weight += nodes.weight[begin + i];
          }
          double* sum = sums.sum.data() + (f * n_thresholds + t) * width + (is_target ? 0 : 1);
          sum[0] += nodes.weight ? weight : static_cast<double>(count);
          if (nodes.weight) sum[2] += static_cast<double>(count);
        }
      });
  return sums;
}

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
    return std::move(next_);
  }

 private:
  template <class Take>
  void pass_on(std::int64_t k, const Take& take) {
    const auto sweep = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        if (!take(is_left_[i])) continue;
        next_.row.push_back(nodes_.row[i]);
        if (nodes_.weight) next_.weight.push_back(nodes_.weight[i]);
      }
    };
    sweep(nodes_.start[k], nodes_.middle[k]);
    next_.middle.push_back(static_cast<std::int64_t>(next_.row.size()));
    sweep(nodes_.middle[k], nodes_.start[k + 1]);
    next_.start.push_back(static_cast<std::int64_t>(next_.row.size()));
  }

  const PartTable<T>& table_;
  const PartNodes& nodes_;
  const Forms& forms_;
  const Fates& fates_;
  std::vector<std::uint8_t> is_left_;
  SplitRows next_;
};

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
