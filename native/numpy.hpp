// What the binding files share: arrays from and to NumPy, and fields of Python objects.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "forest.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lhtree {

template <class T, int n_dim>
using Input = nb::ndarray<const T, nb::ndim<n_dim>, nb::c_contig, nb::device::cpu>;
template <class T, int n_dim>
using Output = nb::ndarray<nb::numpy, T, nb::ndim<n_dim>, nb::c_contig>;
using OptionalWeight = std::optional<Input<double, 1>>;

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

/// The arrays of a forest by name.
nb::dict to_dict(Forest forest);

/// Lets Python handle signals (Ctrl-C) and hear of progress while threads work.
Poll make_poll(nb::handle progress);

/// Add what grows trees over parts of the rows.
void bind_distributed(nb::module_& m);

}  // namespace lhtree
