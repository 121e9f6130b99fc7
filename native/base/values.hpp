// Where the numbers of a table lie: by rows, as NumPy has them, or by columns, as frames do.
#pragma once

#include <cstdint>

namespace lhtree::base {

/// A view: it does not own its memory.
template <class T>
struct Values {
  const T* first = nullptr;
  std::int64_t n_rows = 0, n_columns = 0;
  std::int64_t row_stride = 0, column_stride = 0;

  static Values by_rows(const T* first, std::int64_t n_rows, std::int64_t n_columns) {
    return {first, n_rows, n_columns, n_columns, 1};
  }
  bool is_by_columns() const { return row_stride < column_stride; }
  const T& operator()(std::int64_t row, std::int64_t column) const {
    return first[row * row_stride + column * column_stride];
  }
};

}  // namespace lhtree::base
