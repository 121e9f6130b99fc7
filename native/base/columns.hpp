// What is learned of the columns of a table: their grids and bins.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bins.hpp"
#include "base/grid.hpp"
#include "base/radix_sort.hpp"
#include "base/values.hpp"
#include "old/pages.hpp"
#include "old/parallel.hpp"
#include "old/random.hpp"

namespace lhtree::base {

/// A column of numbers, or of categories, whose codes are its bins.
struct Column {
  std::int32_t n_codes = 0;  // categories; 0 for numbers
  Grid grid;
  std::int32_t fill = 0;          // what a missing value counts as: the mean on the grid
  bool has_gaps = false;          // whether a training row has a missing value
  std::vector<double> threshold;  // between the bins

  bool is_category() const { return n_codes > 0; }
  /// The code of a category; that after the last if it is missing or unknown.
  int look_up_code(double x) const {
    return x >= 0.0 && x < n_codes && x == std::floor(x) ? static_cast<int>(x) : n_codes;
  }
  int n_bins() const { return is_category() ? n_codes : static_cast<int>(threshold.size()) + 1; }
};

/// Rows of bins and of values on the grid, with what a prediction needs of the columns.
struct EncodedRows {
  PageVector<std::uint8_t> bin;
  PageVector<std::int32_t> z;  // empty unless asked for
};

/// The distinct values of a column, ascending, with their weights; missing ones are left out.
class ValueCounter {
 public:
  explicit ValueCounter(const StopFlag& stop) : stop_(stop) {}

  /// `weight` may be null; rows that are `held_out`, if it is not null, do not count.
  const CountedValues& run(const double* value, const std::int64_t* weight,
                           const std::uint8_t* held_out, std::int64_t n) {
    values_.clear();
    weight == nullptr ? count_rows(value, held_out, n) : add_weights(value, weight, held_out, n);
    return values_;
  }

 private:
  void count_rows(const double* value, const std::uint8_t* held_out, std::int64_t n) {
    key_.clear();
    key_.reserve(n);
    for (std::int64_t i = 0; i < n; ++i)
      if (!std::isnan(value[i]) && !(held_out && held_out[i])) key_.push_back(to_key(value[i]));
    sort_keys(key_, spare_, stop_);
    check_stop(stop_);
    std::size_t n_values = 0;
    for (std::size_t i = 0; i < key_.size(); ++i) n_values += i == 0 || key_[i] != key_[i - 1];
    values_.reserve(n_values);
    for (std::size_t i = 0, end = 0; i < key_.size(); i = end) {
      while (end < key_.size() && key_[end] == key_[i]) ++end;
      values_.push_back({from_key(key_[i]), end - i});
    }
  }

  void add_weights(const double* value, const std::int64_t* weight, const std::uint8_t* held_out,
                   std::int64_t n) {
    values_.reserve(n);
    for (std::int64_t i = 0; i < n; ++i)
      if (!std::isnan(value[i]) && !(held_out && held_out[i]))
        values_.push_back({value[i] + 0.0, static_cast<std::uint64_t>(weight[i])});
    std::sort(values_.begin(), values_.end(), [this](const Counted& a, const Counted& b) {
      check_stop(stop_);
      return a.value < b.value;
    });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (kept > 0 && values_[kept - 1].value == values_[i].value)
        values_[kept - 1].weight += values_[i].weight;
      else
        values_[kept++] = values_[i];
    }
    values_.resize(kept);
  }

  const StopFlag& stop_;
  PageVector<std::uint64_t> key_, spare_;
  CountedValues values_;
};

/// Add `weight` rows of value zero to the distinct values of a column.
inline void add_zeros(CountedValues& values, std::uint64_t weight) {
  if (weight == 0) return;
  const auto place = std::lower_bound(values.begin(), values.end(), 0.0,
                                      [](const Counted& a, double b) { return a.value < b; });
  if (place != values.end() && place->value == 0.0)
    place->weight += weight;
  else
    values.insert(place, {0.0, weight});
}

/// What is learned of a column of numbers from its distinct values.
inline Column learn_column(const CountedValues& values, int max_bins) {
  Column column;
  if (values.empty()) return column;
  column.threshold = make_thresholds(values, max_bins);
  const auto visit = [&](const auto& look) {
    for (const Counted& each : values) look(each.value, each.weight);
  };
  column.grid = make_grid(visit);
  const Placer placer(column.grid);
  Wide sum;  // of z less the lowest one
  std::uint64_t whole = 0;
  for (const Counted& each : values) {
    sum += multiply(
        static_cast<std::uint64_t>(std::int64_t{placer.place(each.value)} - column.grid.low),
        each.weight);
    whole += each.weight;
  }
  const std::uint64_t mean = divide(sum + sum + Wide{whole, 0}, 2 * whole);
  column.fill = static_cast<std::int32_t>(column.grid.low + static_cast<std::int64_t>(mean));
  return column;
}

/// Encodes the values of one column.
class ColumnEncoder {
 public:
  explicit ColumnEncoder(const Column& column) : column_(column), placer_(column.grid) {}

  std::uint8_t bin(double x) const {
    if (!column_.is_category())
      return look_up_bin(column_.threshold.data(), column_.threshold.size(), x);
    return static_cast<std::uint8_t>(column_.look_up_code(x));
  }
  std::int32_t place(double x) const { return column_.is_category() ? 0 : placer_.place(x); }

 private:
  const Column& column_;  // which must stay where it is
  Placer placer_;
};

/// Learns columns of a dense table, encodes rows, or both; a few columns at a time, on threads.
template <class T>
class TableEncoder {
 public:
  TableEncoder(const Values<T>& values, bool wants_z)
      : values_(values), n_rows_(values.n_rows), n_columns_(values.n_columns), wants_z_(wants_z) {
    rows_.bin.resize(n_rows_ * n_columns_);
    if (wants_z) rows_.z.resize(n_rows_ * n_columns_);
  }

  /// Learn the columns from the rows, all of positive weight, that are not `held_out`; `columns`
  /// says which of them are categories. Encode all rows.
  void learn(std::vector<Column>& columns, const std::int64_t* weight, const std::uint8_t* held_out,
             int max_bins, std::int64_t n_threads, const Poll& poll) {
    run_columns(n_threads, poll, [&](const double* x, std::int64_t j, ValueCounter& counter) {
      Column& column = columns[j];
      if (column.is_category()) return column;
      column = learn_column(counter.run(x, weight, held_out, n_rows_), max_bins);
      for (std::int64_t i = 0; i < n_rows_ && !column.has_gaps; ++i)
        column.has_gaps = std::isnan(x[i]) && !(held_out && held_out[i]);
      return column;
    });
  }

  void encode(const std::vector<Column>& columns, std::int64_t n_threads, const Poll& poll) {
    run_columns(n_threads, poll,
                [&](const double*, std::int64_t j, ValueCounter&) { return columns[j]; });
  }

  EncodedRows take() { return std::move(rows_); }

 private:
  static constexpr std::int64_t small_table = std::int64_t{1} << 22;  // values
  static constexpr std::int64_t words_per_row = 5;  // of a thread: a value, two keys, a count

  /// Threads whose buffers take at most about a third of what a large table takes in doubles.
  std::int64_t limit_threads(std::int64_t n_threads) const {
    if (n_rows_ * n_columns_ <= small_table) return n_threads;
    return std::min(n_threads, std::max<std::int64_t>(1, n_columns_ / (3 * words_per_row)));
  }

  /// Columns that a thread copies at once: they share lines of the cache. Of a large table, the
  /// copies take at most an eighth of it.
  std::int64_t count_at_once(std::int64_t n_threads) const {
    constexpr std::int64_t most = 8;
    if (n_rows_ * n_columns_ <= small_table) return most;
    return std::clamp<std::int64_t>(n_columns_ / (8 * n_threads), 1, most);
  }

  template <class GetColumn>
  void run_columns(std::int64_t n_threads, const Poll& poll, const GetColumn& get_column) {
    n_threads = limit_threads(n_threads);
    const std::int64_t few = count_at_once(n_threads);
    run_tasks((n_columns_ + few - 1) / few, n_threads,
              [&](std::int64_t task, const StopFlag& stop) {
                const std::int64_t first = task * few, last = std::min(n_columns_, first + few);
                const PageVector<double> copy = copy_columns(first, last, stop);
                ValueCounter counter(stop);
                for (std::int64_t j = first; j < last; ++j) {
                  check_stop(stop);
                  const double* x = copy.data() + (j - first) * n_rows_;
                  if (copy.empty()) x = get_values(j);
                  write(x, j, get_column(x, j, counter), stop);
                }
              },
              poll);
  }

  /// The values of some columns, one after the other; empty if they lie so in the table.
  PageVector<double> copy_columns(std::int64_t first, std::int64_t last,
                                  const StopFlag& stop) const {
    PageVector<double> copy;
    if (get_values(first)) return copy;
    copy.resize((last - first) * n_rows_);
    for (std::int64_t i = 0; i < n_rows_ && !stop; ++i)
      for (std::int64_t j = first; j < last; ++j)
        copy[(j - first) * n_rows_ + i] = static_cast<double>(values_(i, j));
    return copy;
  }

  /// The values of a column where they lie, null if they are not doubles in a row.
  const double* get_values(std::int64_t column) const {
    if constexpr (std::is_same_v<T, double>)
      if (values_.row_stride == 1) return &values_(0, column);
    return nullptr;
  }

  void write(const double* x, std::int64_t j, const Column& column, const StopFlag& stop) {
    const ColumnEncoder encoder(column);
    for (std::int64_t i = 0; i < n_rows_ && !stop; ++i)
      rows_.bin[i * n_columns_ + j] = encoder.bin(x[i]);
    if (!wants_z_) return;
    for (std::int64_t i = 0; i < n_rows_ && !stop; ++i)
      rows_.z[i * n_columns_ + j] = encoder.place(x[i]);
  }

  Values<T> values_;
  std::int64_t n_rows_, n_columns_;
  bool wants_z_;
  EncodedRows rows_;
};

/// Rows of stored entries, columns ascending; all others are zero. A view.
struct Entries {
  std::int64_t n_rows = 0, n_columns = 0;
  const std::int64_t* start = nullptr;   // [n_rows + 1]
  const std::int32_t* column = nullptr;  // [n_entries]
  const double* value = nullptr;         // [n_entries]

  std::int64_t size() const { return start[n_rows]; }
};

/// The stored entries of training rows, column after column.
struct ColumnEntries {
  std::vector<std::int64_t> start;  // [n_columns + 1]
  PageVector<double> value;
  PageVector<std::int64_t> weight;  // empty if rows have none
  std::uint64_t whole = 0;          // weight of all training rows
};

/// Take the entries of rows that are not `held_out` column by column; what is returned once `stop`
/// is set does not count.
inline ColumnEntries take_by_columns(const Entries& entries, const std::int64_t* weight,
                                     const std::uint8_t* held_out, const StopFlag& stop) {
  ColumnEntries result;
  std::vector<std::int64_t>& start = result.start;
  start.assign(entries.n_columns + 1, 0);
  for (std::int64_t i = 0; i < entries.n_rows && !stop; ++i)
    for (std::int64_t k = entries.start[i]; k < entries.start[i + 1] && !(held_out && held_out[i]);
         ++k)
      ++start[entries.column[k] + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  result.value.resize(start.back());
  result.weight.resize(weight ? start.back() : 0);
  std::vector<std::int64_t> next(start.begin(), start.end() - 1);
  for (std::int64_t i = 0; i < entries.n_rows && !stop; ++i) {
    if (held_out && held_out[i]) continue;
    result.whole += static_cast<std::uint64_t>(weight ? weight[i] : 1);
    for (std::int64_t k = entries.start[i]; k < entries.start[i + 1]; ++k) {
      const std::int64_t place = next[entries.column[k]]++;
      result.value[place] = entries.value[k];
      if (weight) result.weight[place] = weight[i];
    }
  }
  return result;
}

/// Learn the columns of a sparse table of numbers, whose rows have positive weights or all one,
/// from those that are not `held_out`.
inline std::vector<Column> learn_columns(const Entries& entries, const std::int64_t* weight,
                                         const std::uint8_t* held_out, int max_bins,
                                         std::int64_t n_threads, const Poll& poll) {
  ColumnEntries own;
  const auto take = [&](std::int64_t, const StopFlag& stop) {
    own = take_by_columns(entries, weight, held_out, stop);
  };
  run_tasks(1, 1, take, poll);
  const std::int64_t d = entries.n_columns;
  std::vector<Column> columns(d);
  constexpr std::int64_t few = 64;
  run_tasks((d + few - 1) / few, n_threads,
            [&](std::int64_t task, const StopFlag& stop) {
              ValueCounter counter(stop);
              for (std::int64_t j = task * few; j < std::min(d, (task + 1) * few); ++j) {
                check_stop(stop);
                const std::int64_t begin = own.start[j], size = own.start[j + 1] - begin;
                CountedValues values =
                    counter.run(own.value.data() + begin,
                                weight ? own.weight.data() + begin : nullptr, nullptr, size);
                std::uint64_t stored = 0;
                for (const Counted& each : values) stored += each.weight;
                add_zeros(values, own.whole - stored);
                columns[j] = learn_column(values, max_bins);
              }
            },
            poll);
  return columns;
}

/// Encode the entries of a sparse table.
inline EncodedRows encode_entries(const Entries& entries, const std::vector<Column>& columns,
                                  bool wants_z, std::int64_t n_threads, const Poll& poll) {
  const std::vector<ColumnEncoder> encoder(columns.begin(), columns.end());
  const std::int64_t n = entries.size();
  EncodedRows rows;
  rows.bin.resize(n);
  rows.z.resize(wants_z ? n : 0);
  constexpr std::int64_t few = 1 << 16;
  const auto encode = [&](std::int64_t task, const StopFlag&) {
    for (std::int64_t k = task * few; k < std::min(n, (task + 1) * few); ++k) {
      rows.bin[k] = encoder[entries.column[k]].bin(entries.value[k]);
      if (wants_z) rows.z[k] = encoder[entries.column[k]].place(entries.value[k]);
    }
  };
  run_tasks((n + few - 1) / few, n_threads, encode, poll);
  return rows;
}

}  // namespace lhtree::base
