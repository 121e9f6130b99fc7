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

#include "projection_kernels.hpp"
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

  std::int64_t n_bins(std::int64_t s) const { return bin_start[s + 1] - bin_start[s]; }

  /// Bins per unit of the projection; 0 where a segment is too narrow or too wide for any.
  double scale(std::int64_t s) const {
    const double scale = static_cast<double>(n_bins(s)) / (high[s] - low[s]);
    return std::isfinite(scale) && scale > 0.0 ? scale : 0.0;
  }
};

/// Finds the segments of scores: a grid over those of a form tells where to look.
class SegmentFinder {
 public:
  SegmentFinder(const Segments& segments, std::int64_t n_forms) : segments_(segments) {
    for (std::int64_t f = 0; f < n_forms; ++f) {
      const std::int64_t first = segments.start[f], last = segments.start[f + 1];
      const std::int64_t n_cells = cells_per_segment * (last - first);
      Grid grid{cell_.size(), n_cells - 1, 0.0};
      if (first < last) {
        const double range = segments.high[last - 1] - segments.low[first];
        const double scale = static_cast<double>(n_cells) / range;
        if (std::isfinite(scale) && scale > 0.0) grid.scale = scale;
      }
      std::int64_t s = first;
      for (std::int64_t c = 0; c < n_cells; ++c) {
        while (s + 1 < last && find_cell(grid, segments.low[s + 1] - segments.low[first]) < c) ++s;
        cell_.push_back(s);
      }
      grid_.push_back(grid);
    }
  }

  /// Call visit(i, s) for the scores that lie in a segment s of form f.
  template <class Visit>
  void find(std::int64_t f, const double* score, std::int64_t n, const Visit& visit) const {
    const std::int64_t first = segments_.start[f], last = segments_.start[f + 1];
    if (first == last) return;
    const double lowest = segments_.low[first], highest = segments_.high[last - 1];
    for (std::int64_t i = 0; i < n; ++i) {
      if (!(score[i] >= lowest && score[i] <= highest)) continue;  // nearly all
      std::int64_t s = cell_[grid_[f].begin + find_cell(grid_[f], score[i] - lowest)];
      while (s + 1 < last && segments_.low[s + 1] <= score[i]) ++s;
      if (score[i] <= segments_.high[s]) visit(i, s);
    }
  }

 private:
  static constexpr std::int64_t cells_per_segment = 4;
  struct Grid {
    std::size_t begin;
    std::int64_t last;  // number of the last cell
    double scale;       // cells per unit; 0: only the first is used
  };

  static std::int64_t find_cell(const Grid& grid, double distance) {
    return std::min(static_cast<std::int64_t>(distance * grid.scale), grid.last);
  }

  const Segments& segments_;
  std::vector<Grid> grid_;
  std::vector<std::int64_t> cell_;  // the last segment that begins before the cell
};

/// Counts of projections in bins, and their ends.
template <class T>
class BinCounter {
 public:
  BinCounter(const PartTable<T>& table, const PartNodes& nodes, const Forms& forms,
             const Segments& segments)
      : nodes_(nodes),
        segments_(segments),
        projector_(table, nodes, forms),
        finder_(segments, forms.n_forms),
        bin_(segments.bin_start[segments.start[forms.n_forms]]),
        form_end_(4 * forms.n_forms, lowest_end) {
    for (std::int64_t s = 0; s < segments.start[forms.n_forms]; ++s)
      scale_.push_back(segments.scale(s));
  }

  PartSums run() {
    projector_.run([&](std::int64_t f, const double* score, std::int64_t begin, std::int64_t n,
                       bool is_target) {
      const int side = is_target ? 0 : 1;
      widen(form_end_.data() + 4 * f + 2 * side, score, n);
      if (segments_.is_whole) {
        const std::int64_t s = segments_.start[f];
        place(s, score, n);
        Bin* first = bin_.data() + segments_.bin_start[s];
        for (std::int64_t i = 0; i < n; ++i) add(first[place_[i]], score[i], begin + i, side);
        return;
      }
      finder_.find(f, score, n, [&](std::int64_t i, std::int64_t s) {
        const auto bin = static_cast<std::int64_t>((score[i] - segments_.low[s]) * scale_[s]);
        add(bin_[segments_.bin_start[s] + std::min(bin, segments_.n_bins(s) - 1)], score[i],
            begin + i, side);
      });
    });
    return list();
  }

 private:
  struct Bin {  // one line of a cache holds two
    double end[2] = {lowest_end, lowest_end};
    double weight[2] = {0.0, 0.0};
  };

  static void widen(double* end, const double* score, std::int64_t n) {
    const Extremes extremes = find_extremes(score, n);
    end[0] = std::max(end[0], -extremes.min);
    end[1] = std::max(end[1], extremes.max);
  }

  void place(std::int64_t s, const double* score, std::int64_t n) {
    find_bins(score, n, segments_.low[s], scale_[s],
              static_cast<std::int32_t>(segments_.n_bins(s) - 1), place_);
  }

  void add(Bin& bin, double score, std::int64_t i, int side) {
    bin.end[0] = std::max(bin.end[0], -score);
    bin.end[1] = std::max(bin.end[1], score);
    if (!nodes_.weight) {
      bin.weight[side] += 1.0;
      return;
    }
    if (number_.empty()) number_.resize(2 * bin_.size(), 0.0);
    bin.weight[side] += nodes_.weight[i];
    number_[2 * (&bin - bin_.data()) + side] += 1.0;
  }

  PartSums list() const {
    PartSums sums;
    const std::size_t n = bin_.size();
    sums.sum.reserve(n * (nodes_.weight ? 4 : 2));
    sums.end.reserve(2 * n + form_end_.size());
    for (std::size_t b = 0; b < n; ++b) {
      sums.sum.insert(sums.sum.end(), bin_[b].weight, bin_[b].weight + 2);
      for (int side = 0; nodes_.weight && side < 2; ++side)
        sums.sum.push_back(number_.empty() ? 0.0 : number_[2 * b + side]);
      sums.end.insert(sums.end.end(), bin_[b].end, bin_[b].end + 2);
    }
    sums.end.insert(sums.end.end(), form_end_.begin(), form_end_.end());
    return sums;
  }

  const PartNodes& nodes_;
  const Segments& segments_;
  Projector<T> projector_;
  SegmentFinder finder_;
  std::vector<Bin> bin_;
  std::vector<double> scale_;   // bins per unit, for each segment
  std::vector<double> number_;  // of rows by bin and side, where their weights differ
  std::vector<double> form_end_;
  std::int32_t place_[rows_per_piece];
};

/// Counts per bin: weights of the targets and of the rest, and their numbers if rows weigh
/// differently. The ends are those of the projections in each bin, then those of each form:
/// targets, rest.
template <class T>
PartSums count_bins(const PartTable<T>& table, const PartNodes& nodes, const Forms& forms,
                    const Segments& segments) {
  return BinCounter<T>(table, nodes, forms, segments).run();
}

/// Single projections.
struct ListedScores {
  std::vector<std::int32_t> form;
  std::vector<double> score, weight;  // no weights where every row counts once
  std::vector<std::uint8_t> is_target;
};

/// The projections that lie in segments.
template <class T>
ListedScores list_scores(const PartTable<T>& table, const PartNodes& nodes, const Forms& forms,
                         const Segments& segments) {
  ListedScores listed;
  const SegmentFinder finder(segments, forms.n_forms);
  Projector<T>(table, nodes, forms)
      .run([&](std::int64_t f, const double* score, std::int64_t begin, std::int64_t n,
               bool is_target) {
        finder.find(f, score, n, [&](std::int64_t i, std::int64_t) {
          listed.form.push_back(static_cast<std::int32_t>(f));
          listed.score.push_back(score[i]);
          listed.is_target.push_back(is_target);
          if (nodes.weight) listed.weight.push_back(nodes.weight[begin + i]);
        });
      });
  return listed;
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
