// What trees say of rows: sums of leaves, leaves, contributions.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/columns.hpp"
#include "ensemble_arrays.hpp"
#include "predict/explain.hpp"
#include "predict/walk_blocks.hpp"
#include "read_columns.hpp"
#include "threads.hpp"

namespace lhtree {
namespace {

/// Check an ensemble, and return what walks down its trees need beside it.
nb::tuple prepare_ensemble(nb::handle ensemble, nb::handle columns_object) {
  const EnsembleArrays arrays(ensemble);
  const std::vector<base::Column> columns = read_columns(columns_object);
  arrays.check(columns);
  predict::Prepared prepared = predict::prepare(arrays.view(), columns);
  std::vector<std::uint64_t> words;
  words.reserve(2 * prepared.steps.size());
  for (const predict::Step& step : prepared.steps) {
    const auto both = std::bit_cast<std::array<std::uint64_t, 2>>(step);
    words.insert(words.end(), both.begin(), both.end());
  }
  return nb::make_tuple(to_numpy<std::uint64_t, 2>(std::move(words), {prepared.steps.size(), 2}),
                        to_numpy(std::move(prepared.used)),
                        to_numpy(std::move(prepared.term_position)),
                        to_numpy(std::move(prepared.singles)));
}

/// Call run(view, columns, begin, end) for blocks of all rows; the ensemble was prepared.
template <class T, class Run>
void run_blocks(const Input<T, 2>& X, nb::handle ensemble, nb::handle columns_object,
                nb::handle prepared, std::int64_t n_threads, const Run& run) {
  const EnsembleArrays arrays(ensemble);
  const std::vector<base::Column> columns = read_columns(columns_object);
  const auto steps = nb::cast<Input<std::uint64_t, 2>>(prepared[0]);
  const auto used = nb::cast<Ints>(prepared[1]);
  const auto position = nb::cast<Ints>(prepared[2]), singles = nb::cast<Ints>(prepared[3]);
  demand(X.shape(1) == columns.size(), "X must have the columns of the training rows");
  demand(steps.shape(0) == arrays.left.size() && position.size() == arrays.feature.size(),
         "the ensemble must have been prepared");
  const Poll poll = make_poll(nb::none());
  nb::gil_scoped_release unlocked;
  const predict::PreparedView view{arrays.view(),
                                   reinterpret_cast<const predict::Step*>(steps.data()),
                                   used.data(),
                                   static_cast<std::int64_t>(used.size()),
                                   position.data(),
                                   singles.data(),
                                   static_cast<std::int64_t>(singles.size())};
  const auto n = static_cast<std::int64_t>(X.shape(0));
  constexpr std::int64_t block = 1024;
  if (n <= block) return run(view, columns, 0, n);
  run_tasks((n + block - 1) / block, n_threads,
            [&](std::int64_t k, const StopFlag&) {
              run(view, columns, k * block, std::min(n, (k + 1) * block));
            },
            poll);
}

/// Call visit(row, tree, node, leaf) for the leaves of all rows.
template <class T, class Visit>
void walk_rows(const Input<T, 2>& X, nb::handle ensemble, nb::handle columns, nb::handle prepared,
               std::int64_t n_threads, const Visit& visit) {
  constexpr std::int64_t few = 16;  // rows that walk one by one
  run_blocks(X, ensemble, columns, prepared, n_threads,
             [&](const predict::PreparedView& view, const std::vector<base::Column>& known,
                 std::int64_t begin, std::int64_t end) {
               if (end - begin <= few)
                 predict::Walker<T>(view, known).run(X.data(), begin, end, visit);
               else
                 predict::BlockWalker<T>(view, known).run(X.data(), begin, end, visit);
             });
}

/// How the values of trees become scores: each tree adds to all outputs, or they take turns.
struct Outputs {
  std::size_t n, width;  // scores of a row, values of a leaf

  Outputs(nb::handle ensemble, std::size_t n_values)
      : n(get_array<std::int64_t>(ensemble, "base").size()), width(n_values) {
    demand(width == n || width == 1, "value must have a column for each output, or one");
  }
  /// The first output that a tree adds to.
  std::size_t first_of(std::int64_t tree) const {
    return width == n ? 0 : static_cast<std::size_t>(tree) % n;
  }
};

/// Which trees say something of which rows: bits by estimator; without any, all of all rows.
struct Voters {
  std::optional<Input<std::uint64_t, 2>> bits;
  std::int64_t n_turns;

  bool includes(std::int64_t row, std::int64_t tree) const {
    if (!bits) return true;
    const std::uint64_t* word = bits->data() + tree / n_turns * bits->shape(1);
    return word[row >> 6] >> (row & 63) & 1;
  }
};

/// Sums of what the leaves of each row add to each output.
template <class T>
Output<std::int64_t, 2> sum_trees(const Input<T, 2>& X, nb::handle ensemble, nb::handle columns,
                                  nb::handle prepared,
                                  std::optional<Input<std::uint64_t, 2>> out_of_bag,
                                  std::int64_t n_threads) {
  const auto value = get_array<std::int32_t, 2>(ensemble, "value");
  const auto start = get_array<std::int64_t>(ensemble, "tree_start");
  const auto n_nodes = static_cast<std::size_t>(start(start.size() - 1));
  demand(2 * value.shape(0) == n_nodes + start.size() - 1, "value must have one row per leaf");
  const Outputs outputs(ensemble, value.shape(1));
  const Voters voters{out_of_bag, static_cast<std::int64_t>(outputs.n / outputs.width)};
  if (out_of_bag)
    demand(out_of_bag->shape(0) * outputs.n >= (start.size() - 1) * outputs.width &&
               64 * out_of_bag->shape(1) >= X.shape(0),
           "out_of_bag must have a bit for each estimator and row");
  std::vector<std::int64_t> score(X.shape(0) * outputs.n, 0);
  walk_rows(X, ensemble, columns, prepared, n_threads,
            [&](std::int64_t row, std::int64_t tree, std::int64_t, std::int64_t leaf) {
              if (!voters.includes(row, tree)) return;
              const std::int32_t* added = value.data() + leaf * outputs.width;
              std::int64_t* sum = score.data() + row * outputs.n + outputs.first_of(tree);
              for (std::size_t k = 0; k < outputs.width; ++k) sum[k] += added[k];
            });
  return to_numpy<std::int64_t, 2>(std::move(score), {X.shape(0), outputs.n});
}

/// The leaf of each row in each tree.
template <class T>
Output<std::int64_t, 2> find_leaves(const Input<T, 2>& X, nb::handle ensemble, nb::handle columns,
                                    nb::handle prepared, std::int64_t n_threads) {
  const std::size_t n_trees = get_array<std::int64_t>(ensemble, "tree_start").size() - 1;
  std::vector<std::int64_t> leaf(X.shape(0) * n_trees);
  walk_rows(X, ensemble, columns, prepared, n_threads,
            [&](std::int64_t row, std::int64_t tree, std::int64_t node, std::int64_t) {
              leaf[row * n_trees + tree] = node;
            });
  return to_numpy<std::int64_t, 2>(std::move(leaf), {X.shape(0), n_trees});
}

/// What each column adds to each score of each row, as integers.
template <class T>
Output<std::int64_t, 3> divide_scores(const Input<T, 2>& X, nb::handle ensemble, nb::handle columns,
                                      nb::handle prepared, const Input<std::int64_t, 2>& node_value,
                                      std::int64_t n_threads) {
  demand(node_value.shape(0) == get_array<std::int32_t>(ensemble, "left").size() &&
             node_value.shape(1) > 0,
         "node_value must have one row per node");
  const Outputs outputs(ensemble, node_value.shape(1));
  const std::size_t n_columns = X.shape(1), n_parts = outputs.n * n_columns;
  std::vector<std::int64_t> sum(X.shape(0) * n_parts, 0);
  run_blocks(X, ensemble, columns, prepared, n_threads,
             [&](const predict::PreparedView& view, const std::vector<base::Column>& known,
                 std::int64_t begin, std::int64_t end) {
               const predict::ChangeDivider divider(view, node_value.data(),
                                                    static_cast<std::int64_t>(outputs.width),
                                                    static_cast<std::int64_t>(n_columns));
               predict::Walker<T>(view, known)
                   .run(
                       X.data(), begin, end, [](auto...) {},
                       [&](std::int64_t row, std::int64_t tree, std::int64_t split,
                           std::int64_t child, const std::int32_t* z) {
                         const std::size_t first = outputs.first_of(tree) * n_columns;
                         divider.divide(split, child, z, sum.data() + row * n_parts + first);
                       });
             });
  return to_numpy<std::int64_t, 3>(std::move(sum), {X.shape(0), outputs.n, n_columns});
}

template <class T>
void bind_for(nb::module_& m) {
  m.def("sum_trees", &sum_trees<T>, "X"_a.noconvert(), "ensemble"_a, "columns"_a, "prepared"_a,
        "out_of_bag"_a.none(), "n_threads"_a);
  m.def("find_leaves", &find_leaves<T>, "X"_a.noconvert(), "ensemble"_a, "columns"_a, "prepared"_a,
        "n_threads"_a);
  m.def("divide_scores", &divide_scores<T>, "X"_a.noconvert(), "ensemble"_a, "columns"_a,
        "prepared"_a, "node_value"_a, "n_threads"_a);
}

}  // namespace

void bind_ensemble(nb::module_& m) {
  m.def("prepare_ensemble", &prepare_ensemble, "ensemble"_a, "columns"_a);
  bind_for<double>(m);
  bind_for<float>(m);
}

}  // namespace lhtree
