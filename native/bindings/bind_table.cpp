// What must be known of rows before trees grow from them.
#include <cstdint>
#include <utility>
#include <vector>

#include "old/scale.hpp"
#include "threads.hpp"

namespace lhtree {
namespace {

/// Run task(stop) without the interpreter's lock, on a thread of its own if it is long.
template <class Task>
void run_alone(std::int64_t n_values, const Task& task) {
  const Poll poll = make_poll(nb::none());
  nb::gil_scoped_release unlocked;
  if (n_values > small_work)
    return run_tasks(
        1, 1, [&](std::int64_t, const StopFlag& stop) { task(stop); }, poll);
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
void bind_for(nb::module_& m) {
  m.def("compute_scale", &scale<T>, "X"_a.noconvert(), "weight"_a.noconvert().none());
  m.def("list_columns_beyond", &beyond<T>, "X"_a.noconvert(), "limit"_a);
  m.def("has_infinity", &infinity<T>, "X"_a.noconvert());
}

}  // namespace

void bind_table(nb::module_& m) {
  bind_for<double>(m);
  bind_for<float>(m);
}

}  // namespace lhtree
