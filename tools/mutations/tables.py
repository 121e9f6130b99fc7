"""Bugs of sparse tables, categories and frames."""

from mutations.mutation import Mutation


def in_sparse(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the native core that only sparse tables meet."""
    return Mutation(name, "native", old, new, ("test_sparse.py",))


def in_columns(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the encoding of columns."""
    return Mutation(name, "src/lhtree", old, new, ("test_columns.py", "test_sparse.py"))


# fmt: off
MUTATIONS = (
    in_sparse("sparse-place", "place < n && row_at(place) == row", "place < n"),
    in_sparse("sparse-node", "node_[j] == number_", "node_[j] + 1 >= number_ && node_[j]"),
    in_sparse("sparse-count", "whole.count[j] -= part.count[j];", ""),
    in_sparse("sparse-weight-kept", "column_weight_[j] = 0.0;", ";"),
    in_sparse("sparse-lane", "sum.add(j % lane_count, column_weight_[j]",
              "sum.add(k % lane_count, column_weight_[j]"),
    in_sparse("sparse-square", "moments.square[j] += wx * x;", "moments.square[j] += x * x;"),
    in_sparse("sparse-anew", "if (is_sure || sum_anew(rows, j, moments->count[j], column))",
              "if (is_sure)"),
    in_columns("sparse-zeros", "rest * mean**2", "0 * mean**2"),
    in_columns("sparse-left-out", "rows.start // 64 :", "0 :"),
    in_columns("category-unknown", "slots.get(value, -1) for", "slots.get(value, 0) for"),
    in_columns("category-missing", "for value in values] + [-1]", "for value in values] + [0]"),
    in_columns("category-rarest", "key=lambda k: -count[k]", "key=lambda k: count[k]"),
    in_columns("category-absent", "if weight is not None and not weight.all():\n        X, weight",
               "if weight is not None and weight.all():\n        X, weight"),
    in_columns("category-weight", "None if weight is None else weight[is_present]", "None"),
    in_columns("category-twice",
               "return np.array([*number_of, -1], dtype=np.int64)[code], list(number)",
               "return np.asarray(code), [to_value(value) for value in values]"),
    in_columns("category-scaled", "mean[is_indicator], deviation[is_indicator] = 0.0, 1.0",
               "pass"),
    in_columns("category-never-scaled", 'resolve_splits(self, n_features).contrast == "mean"',
               "resolve_splits(self, n_features)"),
)
