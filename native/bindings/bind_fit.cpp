// Growing forests, and what follows from their draws and their costs.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "old/forest.hpp"
#include "numpy.hpp"
#include "old/pages.hpp"
#include "old/scale.hpp"

namespace lhtree {
namespace {

Labels check_labels(const Input<std::int32_t, 1>& code, const OptionalWeight& weight,
                    std::size_t n_rows, const Plan& plan) {
  check_length(code.size(), n_rows, "code");
  if (weight) check_length(weight->size(), n_rows, "weight");
  for (std::size_t i = 0; i < code.size(); ++i)
    if (code(i) < 0 || code(i) >= plan.n_classes) throw std::invalid_argument("a code is no class");
  return {code.data(), weight_of(weight)};
}

template <class T>
nb::dict grow(const Input<T, 2>& X, const Input<std::int32_t, 1>& code,
              const OptionalWeight& weight, nb::handle plan_object, std::int64_t n_threads,
              nb::object progress) {
  const Plan plan = read_plan(plan_object);
  const auto [n_rows, n_columns] = find_shape(X, plan);
  const Labels labels = check_labels(code, weight, n_rows, plan);
  const Poll poll = make_poll(progress);
  Forest forest;
  {
    nb::gil_scoped_release unlocked;
    // Checks of the labels copied them, 2 % of a table of 50 columns, which the allocator keeps.
    constexpr std::size_t large = 1 << 20;  // bytes
    if (X.size() * sizeof(T) >= large) trim_heap();
    const bool has_missing = !is_finite(X.data(), X.size());
    if (plan.by_columns)
      forest = grow_forest(ColumnTable<T>(X.data(), n_rows, n_columns, has_missing), labels, plan,
                           n_threads, poll);
    else
      forest = grow_forest(make_row_table(X.data(), n_rows, n_columns, has_missing, plan.rules),
                           labels, plan, n_threads, poll);
  }
  return to_dict(std::move(forest));
}

/// Refuse rows that the core could not walk: columns must ascend within each.
void check_sparse(const Input<std::int64_t, 1>& start, const Input<std::int32_t, 1>& column,
                  std::size_t n_values, std::int64_t n_columns) {
  const bool has_ends = start.size() > 1 && start(0) == 0 && n_columns > 0 &&
                        column.size() == n_values &&
                        start(start.size() - 1) == static_cast<std::int64_t>(n_values);
  bool is_sound = has_ends;
  for (std::size_t i = 0; is_sound && i + 1 < start.size(); ++i)
    is_sound = start(i) <= start(i + 1);
  for (std::size_t i = 0; is_sound && i + 1 < start.size(); ++i)
    for (std::int64_t k = start(i); is_sound && k < start(i + 1); ++k)
      is_sound =
          column(k) >= 0 && column(k) < n_columns && (k == start(i) || column(k - 1) < column(k));
  if (!is_sound) throw std::invalid_argument("start, column and value are no sparse table");
}

nb::dict grow_sparse(const Input<std::int64_t, 1>& start, const Input<std::int32_t, 1>& column,
                     const Input<double, 1>& value, std::int64_t n_columns,
                     const Input<std::int32_t, 1>& code, const OptionalWeight& weight,
                     nb::handle plan_object, std::int64_t n_threads, nb::object progress) {
  const Plan plan = read_plan(plan_object);
  check_sparse(start, column, value.size(), n_columns);
  const std::size_t n_rows = start.size() - 1;
  check_order(plan, n_columns);
  const Labels labels = check_labels(code, weight, n_rows, plan);
  const Poll poll = make_poll(progress);
  Forest forest;
  {
    nb::gil_scoped_release unlocked;
    const SparseTable table(start.data(), column.data(), value.data(),
                            static_cast<std::int64_t>(n_rows), n_columns, plan.by_columns);
    forest = grow_forest(table, labels, plan, n_threads, poll);
  }
  return to_dict(std::move(forest));
}

/// Bits of the rows that each member did not draw, see LeftOut, and their number by row.
std::pair<Output<std::uint64_t, 2>, Output<std::int64_t, 1>> find_left_out(
    std::uint64_t seed, std::int64_t n_members, std::uint32_t n_rows, std::uint32_t n_draws,
    bool bootstrap, std::int64_t n_threads) {
  if (n_rows == 0) throw std::invalid_argument("n_rows must be at least 1");
  const std::size_t n_words = (n_rows + std::size_t{63}) / 64;
  std::vector<std::uint64_t> word;
  std::vector<std::int64_t> count;
  const Poll poll = make_poll(nb::none());
  {
    nb::gil_scoped_release unlocked;
    word.assign(n_members * n_words, ~std::uint64_t{0});
    count.assign(n_rows, n_members);
    run_tasks(
        n_members, n_threads,
        [&](std::int64_t member, const StopFlag& stop) {
          for (const std::uint32_t i :
               draw_rows(seed, member, n_rows, n_draws, bootstrap, {}, stop).row)
            word[member * n_words + i / 64] &= ~(std::uint64_t{1} << (i % 64));
        },
        poll);
    const std::int64_t size = 1 << 16, n_blocks = (n_rows + size - 1) / size;
    run_tasks(
        n_blocks, n_threads,
        [&](std::int64_t block, const StopFlag& stop) {
          const std::int64_t end = std::min<std::int64_t>(n_rows, (block + 1) * size);
          for (std::int64_t member = 0; member < n_members; ++member) {
            check_stop(stop);
            for (std::int64_t i = block * size; i < end; ++i)
              count[i] -= 1 - (word[member * n_words + i / 64] >> (i % 64) & 1);
          }
        },
        poll);
  }
  return {
      to_numpy<std::uint64_t, 2>(std::move(word), {static_cast<std::size_t>(n_members), n_words}),
      to_numpy(std::move(count))};
}

/// Of one tree: at what cost-complexity each split becomes a leaf, and what that costs.
std::pair<Output<double, 1>, Output<double, 1>> find_links(const Input<std::int32_t, 1>& left,
                                                           const Input<double, 1>& risk) {
  if (left.size() != risk.size()) throw std::invalid_argument("left and risk differ in length");
  const auto n_nodes = static_cast<std::int64_t>(left.size());
  for (std::int64_t i = 0; i < n_nodes; ++i)
    if (left(i) >= 0 && (left(i) <= i || left(i) + 1 >= n_nodes))
      throw std::invalid_argument("a child is out of range");
  const std::vector<std::int32_t> child(left.data(), left.data() + n_nodes);
  Links links = LinkFinder(child, {risk.data(), risk.data() + n_nodes}).take();
  return {to_numpy(std::move(links.strength)), to_numpy(std::move(links.gain))};
}

template <class T>
void bind_for(nb::module_& m) {
  m.def("grow_forest", &grow<T>, "X"_a.noconvert(), "code"_a.noconvert(),
        "weight"_a.noconvert().none(), "plan"_a, "n_threads"_a, "progress"_a.none());
}

}  // namespace

void bind_fit(nb::module_& m) {
  bind_for<double>(m);
  bind_for<float>(m);
  m.def("grow_sparse", &grow_sparse, "start"_a.noconvert(), "column"_a.noconvert(),
        "value"_a.noconvert(), "n_columns"_a, "code"_a.noconvert(), "weight"_a.noconvert().none(),
        "plan"_a, "n_threads"_a, "progress"_a.none());
  m.def("find_left_out", &find_left_out, "seed"_a, "n_members"_a, "n_rows"_a, "n_draws"_a,
        "bootstrap"_a, "n_threads"_a);
  m.def("find_links", &find_links, "left"_a.noconvert(), "risk"_a.noconvert());
}

}  // namespace lhtree
