// Arrays from and to NumPy, and fields of Python objects: what all binding files share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
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

namespace nb = nanobind;
using namespace nb::literals;

namespace lhtree {

template <class T, int n_dim>
using Input = nb::ndarray<const T, nb::ndim<n_dim>, nb::c_contig, nb::device::cpu>;
template <class T, int n_dim>
using Output = nb::ndarray<nb::numpy, T, nb::ndim<n_dim>, nb::c_contig>;
using OptionalWeight = std::optional<Input<double, 1>>;
/// By rows, by columns, or otherwise: read where it lies.
template <class T>
using AnyOrder = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
using RowNumbers = Input<std::uint32_t, 1>;
using Longs = Input<std::int64_t, 1>;
using Ints = Input<std::int32_t, 1>;
using Doubles = Input<double, 1>;
using Scale = std::pair<Doubles, Doubles>;  // mean and std of the columns

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

/// A field of a Python object as a table in any order, never converted.
template <class T>
AnyOrder<T> get_table(nb::handle object, const char* name) {
  const nb::object field = object.attr(name);
  AnyOrder<T> table;
  if (!nb::try_cast(field, table, false))
    throw std::invalid_argument(std::string("the array '") + name +
                                "' has the wrong type or number of dimensions");
  return table;
}

/// Read a field of a Python object by its name.
template <class T>
void read_field(nb::handle object, const char* name, T& value) {
  value = nb::cast<T>(object.attr(name));
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

// The parts of the module, each in a file of its name.
void bind_table(nb::module_& m);
void bind_columns(nb::module_& m);
void bind_boosting(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_ensemble(nb::module_& m);
void bind_grow(nb::module_& m);
void bind_predict(nb::module_& m);
void bind_partitions(nb::module_& m);
void bind_decisions(nb::module_& m);

}  // namespace lhtree
