// The passes over one partition of the rows; see old/part.hpp,
// old/part_scores.hpp and old/part_split.hpp.
#include <cstdint>
#include <utility>
#include <vector>

#include "old/decide.hpp"
#include "old/part.hpp"
#include "old/part_scores.hpp"
#include "old/part_split.hpp"
#include "read_state.hpp"
#include "threads.hpp"

namespace lhtree {
namespace {

using TwoArrays = std::pair<Output<double, 1>, Output<double, 1>>;

template <class T>
PartTable<T> read_table(const AnyOrder<T>& X, const Scale& scale) {
  const auto& [mean, std] = scale;
  demand(mean.size() == X.shape(1) && std.size() == X.shape(1),
         "mean and std must have one entry per column");
  return {X.data(),
          X.stride(0),
          X.stride(1),
          static_cast<std::int64_t>(X.shape(0)),
          static_cast<std::int64_t>(X.shape(1)),
          mean.data(),
          std.data()};
}

// What comes from Python as one object: its arrays, kept alive, with their lengths and
// contents checked against each other. `view` is what the passes see of it.

/// Columns to be summed, for each node.
struct RequestHandle {
  Longs start;
  Ints column;
  Doubles origin;
  bool with_products;

  RequestHandle(nb::handle request, std::size_t n_nodes, std::int64_t n_columns)
      : start(get_array<std::int64_t>(request, "column_start")),
        column(get_array<std::int32_t>(request, "column")),
        origin(get_array<double>(request, "origin")),
        with_products(nb::cast<bool>(request.attr("with_products"))) {
    check_starts(start, n_nodes, column.size(), "the columns asked for do not fit");
    demand(origin.size() == column.size(), "origin must have one entry per column asked for");
    for (std::size_t i = 0; i < column.size(); ++i)
      demand(0 <= column(i) && column(i) < n_columns, "a column asked for is out of range");
  }

  ColumnRequest view() const { return {start.data(), column.data(), origin.data(), with_products}; }
};

/// Hyperplanes over the rows of nodes.
struct HyperplanesHandle {
  Longs node, start;
  Ints feature;
  Doubles weight;

  HyperplanesHandle(nb::handle hyperplanes, std::size_t n_nodes, std::size_t n_columns)
      : node(get_array<std::int64_t>(hyperplanes, "node")),
        start(get_array<std::int64_t>(hyperplanes, "start")),
        feature(get_array<std::int32_t>(hyperplanes, "feature")),
        weight(get_array<double>(hyperplanes, "weight")) {
    const char* what = "the hyperplanes do not fit together";
    check_starts(start, node.size(), feature.size(), what);
    demand(weight.size() == feature.size(), what);
    for (std::size_t f = 0; f < node.size(); ++f)
      demand(0 <= node(f) && node(f) < static_cast<std::int64_t>(n_nodes) &&
                 (f == 0 || node(f - 1) <= node(f)),
             what);
    for (std::size_t t = 0; t < feature.size(); ++t)
      demand(0 <= feature(t) && feature(t) < static_cast<std::int64_t>(n_columns), what);
  }

  Forms view() const {
    return {static_cast<std::int64_t>(node.size()), node.data(), start.data(), feature.data(),
            weight.data()};
  }
};

/// Ranges of projections.
struct SegmentsHandle {
  Longs start, bin_start;
  Doubles low, high;
  bool is_whole;

  SegmentsHandle(nb::handle segments, std::size_t n_hyperplanes)
      : start(get_array<std::int64_t>(segments, "start")),
        bin_start(get_array<std::int64_t>(segments, "bin_start")),
        low(get_array<double>(segments, "low")),
        high(get_array<double>(segments, "high")),
        is_whole(nb::cast<bool>(segments.attr("is_whole"))) {
    const char* what = "the segments do not fit together";
    check_starts(start, n_hyperplanes, low.size(), what);
    demand(high.size() == low.size() && bin_start.size() == low.size() + 1 && bin_start(0) == 0,
           what);
    for (std::size_t s = 0; s < low.size(); ++s) demand(bin_start(s) < bin_start(s + 1), what);
    demand(!is_whole || low.size() == n_hyperplanes, what);
    for (std::size_t f = 0; is_whole && f < n_hyperplanes; ++f)
      demand(start(f) < start(f + 1), what);
  }

  Segments view() const {
    return {start.data(), low.data(), high.data(), bin_start.data(), is_whole};
  }
};

/// The nodes of a part and the hyperplanes over their rows: what most passes are about.
template <class T>
struct Projected {
  PartTable<T> table;
  StateHandle state;
  HyperplanesHandle hyperplanes;

  Projected(const AnyOrder<T>& X, const Scale& scale, nb::handle state, nb::handle hyperplanes)
      : table(read_table(X, scale)),
        state(state, X.shape(0)),
        hyperplanes(hyperplanes, this->state.n_nodes(), X.shape(1)) {}

  std::size_t n_hyperplanes() const { return hyperplanes.node.size(); }
};

TwoArrays to_arrays(PartSums sums) {
  return {to_numpy(std::move(sums.sum)), to_numpy(std::move(sums.end))};
}

template <class T>
TwoArrays measure(const AnyOrder<T>& X, const Scale& scale, nb::handle state_object,
                  nb::handle request_object) {
  const PartTable<T> table = read_table(X, scale);
  const StateHandle state(state_object, X.shape(0));
  const RequestHandle request(request_object, state.n_nodes(), table.n_columns);
  return to_arrays(run_pass([&] { return measure_nodes(table, state.view(), request.view()); }));
}

template <class T>
TwoArrays bins(const AnyOrder<T>& X, const Scale& scale, nb::handle state, nb::handle hyperplanes,
               nb::handle segments_object) {
  const Projected<T> part(X, scale, state, hyperplanes);
  const SegmentsHandle segments(segments_object, part.n_hyperplanes());
  return to_arrays(run_pass([&] {
    return count_bins(part.table, part.state.view(), part.hyperplanes.view(), segments.view());
  }));
}

template <class T>
nb::tuple scores(const AnyOrder<T>& X, const Scale& scale, nb::handle state, nb::handle hyperplanes,
                 nb::handle segments_object) {
  const Projected<T> part(X, scale, state, hyperplanes);
  const SegmentsHandle segments(segments_object, part.n_hyperplanes());
  ListedScores listed = run_pass([&] {
    return list_scores(part.table, part.state.view(), part.hyperplanes.view(), segments.view());
  });
  return nb::make_tuple(to_numpy(std::move(listed.form)), to_numpy(std::move(listed.score)),
                        to_numpy(std::move(listed.is_target)), to_numpy(std::move(listed.weight)));
}

template <class T>
TwoArrays below(const AnyOrder<T>& X, const Scale& scale, nb::handle state, nb::handle hyperplanes,
                const Doubles& threshold) {
  const Projected<T> part(X, scale, state, hyperplanes);
  demand(threshold.size() == part.n_hyperplanes() * n_pure_cuts,
         "five thresholds per hyperplane are needed");
  return to_arrays(run_pass([&] {
    return sum_below(part.table, part.state.view(), part.hyperplanes.view(), threshold.data(),
                     n_pure_cuts);
  }));
}

template <class T>
nb::tuple split(const AnyOrder<T>& X, const Scale& scale, nb::handle state, nb::handle hyperplanes,
                nb::handle updates_object) {
  const Projected<T> part(X, scale, state, hyperplanes);
  const auto threshold = get_array<double>(updates_object, "threshold");
  const auto stays = get_array<std::uint8_t>(updates_object, "stays");
  const auto keeps = get_array<std::uint8_t>(updates_object, "keeps");
  const std::size_t n_nodes = part.state.n_nodes();
  demand(stays.size() == n_nodes && keeps.size() == 2 * n_nodes &&
             threshold.size() == part.n_hyperplanes(),
         "the updates do not fit the nodes");
  std::vector<std::int64_t> form(n_nodes, -1);
  for (std::size_t f = 0; f < part.n_hyperplanes(); ++f)
    form[part.hyperplanes.node(f)] = static_cast<std::int64_t>(f);
  const Fates fates{stays.data(), form.data(), keeps.data(), threshold.data()};
  SplitRows next = run_pass([&] {
    return PartSplitter<T>(part.table, part.state.view(), part.hyperplanes.view(), fates).run();
  });
  nb::object next_weight = nb::none();
  if (part.state.weight) next_weight = nb::cast(to_numpy(std::move(next.weight)));
  return nb::make_tuple(to_numpy(std::move(next.row)), next_weight, to_numpy(std::move(next.start)),
                        to_numpy(std::move(next.middle)));
}

template <class T>
Output<double, 2> columns(const AnyOrder<T>& X, const Doubles& origin, const Doubles& unit,
                          const RowNumbers& row, const OptionalWeight& weight) {
  const PartTable<T> table = read_table(X, {origin, unit});
  demand(!weight || weight->size() == row.size(), "weight must have one entry per row");
  for (std::size_t i = 0; i < row.size(); ++i) demand(row(i) < X.shape(0), "a row is out of range");
  PartSums sums = run_pass([&] {
    return sum_columns(table, row.data(), weight_of(weight), static_cast<std::int64_t>(row.size()));
  });
  return to_numpy<double, 2>(std::move(sums.sum), {X.shape(1), 2});
}

template <class T>
void bind_for(nb::module_& m) {
  const auto X = "X"_a.noconvert(), scale = "scale"_a.noconvert();
  m.def("measure_nodes", &measure<T>, X, scale, "state"_a, "request"_a);
  m.def("count_bins", &bins<T>, X, scale, "state"_a, "hyperplanes"_a, "segments"_a);
  m.def("list_scores", &scores<T>, X, scale, "state"_a, "hyperplanes"_a, "segments"_a);
  m.def("sum_below", &below<T>, X, scale, "state"_a, "hyperplanes"_a, "threshold"_a.noconvert());
  m.def("split_nodes", &split<T>, X, scale, "state"_a, "hyperplanes"_a, "updates"_a);
  m.def("sum_columns", &columns<T>, X, "origin"_a.noconvert(), "unit"_a.noconvert(),
        "row"_a.noconvert(), "weight"_a.noconvert().none());
}

}  // namespace

void bind_partitions(nb::module_& m) {
  bind_for<double>(m);
  bind_for<float>(m);
}

}  // namespace lhtree
