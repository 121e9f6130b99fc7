#include "projection_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace lhtree {
namespace {

/// The last, incomplete lane of weights or centers; zeros cancel what lies past a row.
LHTREE_INLINE Lanes load_last(FormView form, const double* values, std::int64_t column) {
  if (form.is_padded) return load(values + column);
  Lanes lanes = fill(0.0);
  for (std::int64_t i = 0; column + i < form.n_terms; ++i) lanes.set(i, values[column + i]);
  return lanes;
}

/// A row whose missing values are replaced by the centers.
template <class T>
LHTREE_INLINE double project_dense_filled(const T* row, FormView form, Lanes last,
                                          Lanes last_center) {
  Lanes sum = fill(0.0);
  const std::int64_t n_whole = form.n_terms / lane_count * lane_count;
  for (std::int64_t column = 0; column < n_whole; column += lane_count)
    sum = sum +
          load(form.weight + column) * fill_missing(load(row + column), load(form.center + column));
  if (n_whole < form.n_terms) sum = sum + last * fill_missing(load(row + n_whole), last_center);
  return combine(sum);
}

template <class T>
LHTREE_INLINE double project_sparse_filled(const T* row, FormView form) {
  Lanes sum = fill(0.0);
  for (std::int64_t k = 0; k < form.n_terms; ++k) {
    const std::int32_t j = form.feature[k];
    const auto value = static_cast<double>(row[j]);
    sum.add(j % lane_count, form.weight[k] * (value == value ? value : form.center[k]));
  }
  return combine(sum);
}

template <class T>
LHTREE_INLINE void project_filled(const T* const* row, std::int64_t n_rows, FormView form,
                                  double* score) {
  if (form.feature) {
    for (std::int64_t i = 0; i < n_rows; ++i) score[i] = project_sparse_filled(row[i], form);
    return;
  }
  Lanes last = fill(0.0), last_center = fill(0.0);
  const std::int64_t n_whole = form.n_terms / lane_count * lane_count;
  if (n_whole < form.n_terms) {
    last = load_last(form, form.weight, n_whole);
    last_center = load_last(form, form.center, n_whole);
  }
  for (std::int64_t i = 0; i < n_rows; ++i)
    score[i] = project_dense_filled(row[i], form, last, last_center);
}

/// Several rows at once hide the latency of the additions. Rows that are `ahead` of them, if it is
/// not zero, are asked for meanwhile: line by line, or wide rows would have to wait for each other.
template <int n_rows, int ahead = 0, class T>
LHTREE_INLINE void project_dense(const T* const* row, FormView form, Lanes last, double* score) {
  Lanes sum[n_rows];
  for (int i = 0; i < n_rows; ++i) sum[i] = fill(0.0);
  const std::int64_t n_whole = form.n_terms / lane_count * lane_count;
  for (std::int64_t column = 0; column < n_whole; column += lane_count) {
    const Lanes weight = load(form.weight + column);
    if constexpr (ahead > 0)
      for (int i = 0; i < n_rows; ++i) prefetch_line(row[i + ahead] + column);
    for (int i = 0; i < n_rows; ++i) sum[i] = sum[i] + weight * load(row[i] + column);
  }
  if (n_whole < form.n_terms)
    for (int i = 0; i < n_rows; ++i) sum[i] = sum[i] + last * load(row[i] + n_whole);
  for (int i = 0; i < n_rows; ++i) score[i] = combine(sum[i]);
}

/// Several rows at once share the columns of the terms; the sums of one lane lie side by side.
template <int n_rows, class T>
LHTREE_INLINE void project_sparse(const T* const* row, FormView form, double* score) {
  constexpr int n_parts = n_rows / part_size;
  Part sum[lane_count][n_parts];
  for (auto& lane : sum)
    for (Part& part : lane) part = fill(0.0).part[0];
  for (std::int64_t k = 0; k < form.n_terms; ++k) {
    const auto j = static_cast<std::uint32_t>(form.feature[k]);
    const Part weight = fill(form.weight[k]).part[0];
    Part* lane = sum[j % lane_count];
    for (int p = 0; p < n_parts; ++p) {
      Part value;
      for (int i = 0; i < part_size; ++i) value[i] = static_cast<double>(row[p * part_size + i][j]);
      lane[p] = lane[p] + weight * value;
    }
  }
  for (int p = 0; p < n_parts; ++p) {
    const Part even = (sum[0][p] + sum[4][p]) + (sum[2][p] + sum[6][p]);
    const Part odd = (sum[1][p] + sum[5][p]) + (sum[3][p] + sum[7][p]);
    const Part total = even + odd;
    std::memcpy(score + p * part_size, &total, sizeof total);
  }
}

template <class T>
LHTREE_INLINE double project_sparse(const T* row, FormView form) {
  Lanes sum = fill(0.0);
  for (std::int64_t k = 0; k < form.n_terms; ++k) {
    const auto j = static_cast<std::uint32_t>(form.feature[k]);
    sum.add(j % lane_count, form.weight[k] * static_cast<double>(row[j]));
  }
  return combine(sum);
}

template <class T>
LHTREE_INLINE void project_all(const T* const* row, std::int64_t n_rows, FormView form, Place place,
                               double* score) {
  if (form.center) return project_filled(row, n_rows, form, score);
  std::int64_t i = 0;
  if (form.feature && form.n_terms == 1) {  // zeros in the other sums change no bit but a sign
    const std::int32_t j = form.feature[0];
    for (; i < n_rows; ++i) score[i] = form.weight[0] * static_cast<double>(row[i][j]) + 0.0;
    return;
  }
  if (form.feature) {
    for (; i + 8 <= n_rows; i += 8) project_sparse<8>(row + i, form, score + i);
    if (i + 4 <= n_rows) {
      project_sparse<4>(row + i, form, score + i);
      i += 4;
    }
    for (; i < n_rows; ++i) score[i] = project_sparse(row[i], form);
    return;
  }
  Lanes last = fill(0.0);
  if (form.n_terms % lane_count)
    last = load_last(form, form.weight, form.n_terms / lane_count * lane_count);
  constexpr int ahead = 8;
  if (place == Place::scattered)
    for (; i + 4 + ahead <= n_rows; i += 4) project_dense<4, ahead>(row + i, form, last, score + i);
  for (; i + 4 <= n_rows; i += 4) project_dense<4>(row + i, form, last, score + i);
  if (i + 2 <= n_rows) {
    project_dense<2>(row + i, form, last, score + i);
    i += 2;
  }
  if (i < n_rows) project_dense<1>(row + i, form, last, score + i);
}

/// The terms of a form by the partial sum that they add to.
struct TermGroups {
  std::vector<std::int32_t> term;
  std::int64_t start[lane_count + 1];  // sum r has the terms from start[r] to start[r + 1]

  explicit TermGroups(const FormView& form) : term(form.n_terms), start{} {
    const auto group_of = [&](std::int64_t k) { return form.feature[k] % lane_count; };
    for (std::int64_t k = 0; k < form.n_terms; ++k) ++start[group_of(k) + 1];
    for (std::int64_t r = 0; r < lane_count; ++r) start[r + 1] += start[r];
    std::int64_t end[lane_count];  // of each group so far
    std::copy_n(start, lane_count, end);
    for (std::int64_t k = 0; k < form.n_terms; ++k)
      term[end[group_of(k)]++] = static_cast<std::int32_t>(k);
  }
};

/// Add up what the terms are, for one row or for several side by side. One sum after the other
/// stays in a register; those that are added to in turn would be kept in memory.
template <class Sum, class Multiply>
LHTREE_INLINE Sum add_groups(const TermGroups& groups, const Sum& zero, const Multiply& multiply) {
  const auto add = [&](int r) {
    Sum sum = zero;
    for (std::int64_t k = groups.start[r]; k < groups.start[r + 1]; ++k) sum = sum + multiply(k);
    return sum;
  };
  return ((add(0) + add(4)) + (add(2) + add(6))) + ((add(1) + add(5)) + (add(3) + add(7)));
}

}  // namespace

LHTREE_CLONES void project(const double* const* row, std::int64_t n_rows, FormView form,
                           Place place, double* score) {
  project_all(row, n_rows, form, place, score);
}

LHTREE_CLONES void project(const float* const* row, std::int64_t n_rows, FormView form, Place place,
                           double* score) {
  project_all(row, n_rows, form, place, score);
}

LHTREE_CLONES void project_each(const double* const* row, DenseForms forms, std::int64_t n_rows,
                                double* score) {
  constexpr std::int64_t ahead = 12;  // rows between asking for one and reading it
  const std::int64_t n_terms = forms.n_terms, n_whole = n_terms / lane_count * lane_count;
  for (std::int64_t i = 0; i < n_rows; ++i) {
    if (i + ahead < n_rows) {
      prefetch(forms.weight[i + ahead], n_terms);
      prefetch(row[i + ahead], n_terms);
    }
    const bool is_padded = forms.end - forms.weight[i] >= padded(n_terms);
    const FormView form{nullptr, forms.weight[i], n_terms, is_padded};
    Lanes last = fill(0.0);
    if (n_whole < n_terms) last = load_last(form, form.weight, n_whole);
    project_dense<1>(row + i, form, last, score + i);
  }
}

LHTREE_CLONES void project_columns(const double* const* column, std::int64_t n_rows, FormView form,
                                   double* score) {
  const TermGroups groups(form);
  const std::int32_t* term = groups.term.data();
  std::int64_t i = 0;
  for (; i + lane_count <= n_rows; i += lane_count)
    store(score + i, add_groups(groups, fill(0.0), [&](std::int64_t k) {
            return fill(form.weight[term[k]]) * load(column[term[k]] + i);
          }));
  for (; i < n_rows; ++i)
    score[i] = add_groups(
        groups, 0.0, [&](std::int64_t k) { return form.weight[term[k]] * column[term[k]][i]; });
}

double project_centered(const double* row, FormView form, const double* center) {
  Lanes sum = fill(0.0);
  for (std::int64_t k = 0; k < form.n_terms; ++k) {
    const std::int64_t j = form.feature ? form.feature[k] : k;
    const double offset = row[j] - center[k];
    sum.add(j % lane_count, form.weight[k] * (offset == offset ? offset : 0.0));
  }
  return combine(sum);
}

}  // namespace lhtree
