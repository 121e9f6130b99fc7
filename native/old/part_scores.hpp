// Projections of a part's rows: counts in bins, single scores, weights beside thresholds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "part.hpp"
#include "projection_kernels.hpp"
#include "score_kernels.hpp"

namespace lhtree {

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

}  // namespace lhtree
