// What the binding files share: arrays from and to NumPy, and fields of Python objects.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "old/forest.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lhtree {

template <class T, int n_dim>
using Input = nb::ndarray<const T, nb::ndim<n_dim>, nb::c_contig, nb::device::cpu>;
template <class T, int n_dim>
using Output = nb::ndarray<nb::numpy, T, nb::ndim<n_dim>, nb::c_contig>;
using OptionalWeight = std::optional<Input<double, 1>>;
using Rows = Input<std::uint32_t, 1>;
using Longs = Input<std::int64_t, 1>;
using Ints = Input<std::int32_t, 1>;
using Doubles = Input<double, 1>;

inline const double* weight_of(const OptionalWeight& weight) {
  return weight ? weight->data() : nullptr;
}

/// A field of a Python object as an array of the given type, never converted.
template <class T, int n_dim = 1>
Input<T, n_dim> get_array(nb::handle object, const char* name) {
  const nb::object field = object.attr(name);  // raises here: try_cast must not
  Input<T, n_dim> array;
  if (!nb::try_cast(field, array, false))
    throw std::invalid_argument(std::string("the array '") + name +
                                "' has the wrong type, order or number of dimensions");
  return array;
}

/// Refuse arguments for which this does not hold.
inline void demand(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

inline void check_length(std::size_t length, std::size_t n_rows, const char* name) {
  if (length != n_rows)
    throw std::invalid_argument(std::string(name) + " must have one entry per row");
}

inline void check_starts(const Longs& start, std::size_t n, std::size_t n_entries,
                         const char* what) {
  demand(start.size() == n + 1 && start(0) == 0 && start(n) == static_cast<std::int64_t>(n_entries),
         what);
  for (std::size_t i = 0; i < n; ++i) demand(start(i) <= start(i + 1), what);
}

template <class T>
void check_not_empty(const Input<T, 2>& X) {
  demand(X.shape(0) > 0 && X.shape(1) > 0, "X must not be empty");
}

/// Hand a vector to NumPy without a copy.
template <class T, int n_dim = 1, class Allocator>
Output<T, n_dim> to_numpy(std::vector<T, Allocator> values, std::array<std::size_t, n_dim> shape) {
  using Vector = std::vector<T, Allocator>;
  auto owned = std::make_unique<Vector>(std::move(values));
  T* data = owned->data();
  nb::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<Vector*>(p); });
  owned.release();
  return Output<T, n_dim>(data, n_dim, shape.data(), owner);
}

template <class T, class Allocator>
Output<T, 1> to_numpy(std::vector<T, Allocator> values) {
  const std::size_t n = values.size();
  return to_numpy<T, 1>(std::move(values), {n});
}

/// The fields of a Python `Plan`.
Plan read_plan(nb::handle plan);

/// Refuse a plan that reads the table in another order than its splits need.
void check_order(const Plan& plan, std::int64_t n_columns);

struct Shape {
  std::int64_t n_rows, n_columns;
};

/// The shape of a table that is transposed if the plan reads it by columns.
template <class T>
Shape find_shape(const Input<T, 2>& X, const Plan& plan) {
  check_not_empty(X);
  Shape shape{static_cast<std::int64_t>(X.shape(0)), static_cast<std::int64_t>(X.shape(1))};
  if (plan.by_columns) std::swap(shape.n_rows, shape.n_columns);
  check_order(plan, shape.n_columns);
  return shape;
}

/// The arrays of a grown forest by name.
nb::dict to_dict(Forest forest);

/// Lets Python handle signals (Ctrl-C) and hear of progress while threads work.
Poll make_poll(nb::handle progress);

/// Run a pass without the interpreter's lock.
template <class Pass>
auto run_pass(const Pass& pass) {
  nb::gil_scoped_release unlocked;
  const StandardArithmetic standard;
  return pass();
}

// The parts of the module, each in a file of its name.
void bind_rows(nb::module_& m);
void bind_fit(nb::module_& m);
void bind_ask(nb::module_& m);
void bind_part(nb::module_& m);
void bind_decide(nb::module_& m);

}  // namespace lhtree
