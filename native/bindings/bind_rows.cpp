// Looking at rows before trees see them, and putting them into the units of the trees.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "numpy.hpp"
#include "old/scale.hpp"

namespace lhtree {
namespace {

/// Run task(stop) without the interpreter's lock, on a thread of its own if it is long.
template <class Task>
void run_alone(std::int64_t n_values, const Task& task) {
  const Poll poll = make_poll(nb::none());
  nb::gil_scoped_release unlocked;
  if (n_values > small_work)
    return run_tasks(1, 1, [&](std::int64_t, const StopFlag& stop) { task(stop); }, poll);
  const StandardArithmetic standard;
  task(StopFlag{false});
}

template <class T>
bool infinity(const Input<T, 2>& X) {
  return has_infinity(X.data(), X.size());
}

template <class T>
std::pair<Output<double, 1>, Output<double, 1>> scale(const Input<T, 2>& X,
                                                      const OptionalWeight& weight) {
  check_not_empty(X);
  if (weight) check_length(weight->size(), X.shape(0), "weight");
  ColumnScale result;
  run_alone(X.size(), [&](const StopFlag& stop) {
    const Table<T> table(X.data(), X.shape(0), X.shape(1), !is_finite(X.data(), X.size()));
    result = find_scale(table, weight_of(weight), stop);
  });
  return {to_numpy(std::move(result.mean)), to_numpy(std::move(result.deviation))};
}

template <class T>
Output<std::int64_t, 1> beyond(const Input<T, 2>& X, double limit) {
  std::vector<std::int64_t> result;
  run_alone(X.size(), [&](const StopFlag& stop) {
    result = find_beyond(X.data(), static_cast<std::int64_t>(X.shape(0)),
                         static_cast<std::int64_t>(X.shape(1)), limit, stop);
  });
  return to_numpy(std::move(result));
}

template <class T>
Output<double, 2> standardized(const Input<T, 2>& X, const Input<double, 1>& mean,
                               const Input<double, 1>& deviation, bool by_columns,
                               std::int64_t n_threads) {
  check_not_empty(X);
  check_length(mean.size(), X.shape(1), "mean");
  check_length(deviation.size(), X.shape(1), "deviation");
  const auto n_rows = static_cast<std::int64_t>(X.shape(0));
  const auto n_columns = static_cast<std::int64_t>(X.shape(1));
  const std::int64_t size = std::max<std::int64_t>(1, small_work / n_columns);
  PageVector<double> scaled;  // goes back to the system before the forest is finished
  scaled.reserve(X.size());
  use_large_pages(scaled);
  scaled.resize(X.size());
  const auto task = [&](std::int64_t i, const StopFlag&) {
    const std::int64_t first = i * size, offset = first * n_columns;
    const std::int64_t n = std::min(size, n_rows - first);
    if (by_columns)
      standardize_columns(X.data() + offset, n, n_columns, mean.data(), deviation.data(),
                          scaled.data() + first, n_rows);
    else
      standardize(X.data() + offset, n, n_columns, mean.data(), deviation.data(),
                  scaled.data() + offset);
  };
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    const StandardArithmetic standard;
    if (n_rows <= size)
      task(0, StopFlag{false});
    else
      run_tasks((n_rows + size - 1) / size, n_threads, task, poll);
  }
  const std::size_t first = by_columns ? X.shape(1) : X.shape(0);
  return to_numpy<double, 2>(std::move(scaled), {first, X.size() / first});
}

template <class T>
void bind_for(nb::module_& m) {
  m.def("find_scale", &scale<T>, "X"_a.noconvert(), "weight"_a.noconvert().none());
  m.def("find_beyond", &beyond<T>, "X"_a.noconvert(), "limit"_a);
  m.def("has_infinity", &infinity<T>, "X"_a.noconvert());
  m.def("standardize", &standardized<T>, "X"_a.noconvert(), "mean"_a.noconvert(),
        "deviation"_a.noconvert(), "by_columns"_a, "n_threads"_a);
}

}  // namespace

void bind_rows(nb::module_& m) {
  bind_for<double>(m);
  bind_for<float>(m);
}

}  // namespace lhtree
