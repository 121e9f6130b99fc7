// A table of bins: one byte a value, row after row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bins.hpp"
#include "old/parallel.hpp"

namespace lhtree::base {

/// Rows of bins; the memory is another's.
struct BinnedTable {
  std::int64_t n_rows = 0;
  std::int64_t n_columns = 0;
  const std::uint8_t* bin = nullptr;  // [n_rows, n_columns]
  std::vector<int> n_bins;            // of present values; the next one holds missing values
  std::vector<std::int64_t> start;    // [n_columns + 1] places of the bins in a histogram

  BinnedTable(std::int64_t n_rows, std::vector<int> bins, const std::uint8_t* bin)
      : n_rows(n_rows),
        n_columns(static_cast<std::int64_t>(bins.size())),
        bin(bin),
        n_bins(std::move(bins)),
        start(1, 0) {
    for (const int n : n_bins) start.push_back(start.back() + n + 1);
  }

  const std::uint8_t* row(std::int64_t i) const { return bin + i * n_columns; }
  std::int64_t n_places() const { return start.back(); }
};

/// What binning a table gives: one byte a value, and the thresholds between the bins.
struct Binned {
  std::vector<std::uint8_t> bin;               // [n_rows, n_columns]
  std::vector<std::vector<double>> threshold;  // of each column
};

/// Bins a table of floats or doubles; columns are read a few at a time, on threads.
template <class T>
class Binner {
 public:
  Binner(const T* value, std::int64_t n_rows, std::int64_t n_columns)
      : value_(value), n_rows_(n_rows), n_columns_(n_columns) {
    result_.bin.resize(n_rows * n_columns);
    result_.threshold.resize(n_columns);
  }

  Binned run(std::int64_t n_threads, const Poll& poll) {
    run_tasks((n_columns_ + few - 1) / few, n_threads,
              [&](std::int64_t task, const StopFlag& stop) {
                bin_columns(task * few, std::min(n_columns_, (task + 1) * few), stop);
              },
              poll);
    return std::move(result_);
  }

 private:
  static constexpr std::int64_t few = 8;  // columns whose values share lines of the cache

  void bin_columns(std::int64_t first, std::int64_t last, const StopFlag& stop) {
    std::vector<double> column((last - first) * n_rows_);
    for (std::int64_t i = 0; i < n_rows_; ++i)
      for (std::int64_t j = first; j < last; ++j)
        column[(j - first) * n_rows_ + i] = static_cast<double>(value_[i * n_columns_ + j]);
    std::vector<std::uint64_t> key, spare;
    for (std::int64_t j = first; j < last; ++j) {
      check_stop(stop);
      const double* x = column.data() + (j - first) * n_rows_;
      key.clear();
      for (std::int64_t i = 0; i < n_rows_; ++i)
        if (!std::isnan(x[i])) key.push_back(to_key(x[i]));
      sort_keys(key, spare);
      result_.threshold[j] = make_thresholds(count_values(key));
    }
    for (std::int64_t i = 0; i < n_rows_; ++i)
      for (std::int64_t j = first; j < last; ++j)
        result_.bin[i * n_columns_ + j] =
            find_bin(result_.threshold[j], column[(j - first) * n_rows_ + i]);
  }

  const T* value_;
  std::int64_t n_rows_, n_columns_;
  Binned result_;
};

}  // namespace lhtree::base
