"""Strategies for tables that are made to hurt."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import reference


@st.composite
def integer_tables(draw, max_rows=40, max_columns=12):
    """Small integers: many ties, duplicates with conflicting labels, constant columns."""
    n, m = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    X = draw(arrays(np.float64, (n, m), elements=st.integers(-3, 3).map(float)))
    return X, draw(arrays(np.bool_, n))


@st.composite
def real_tables(draw, max_rows=60, max_columns=12):
    """Random reals in awkward units: offsets, tiny and huge columns, copies of columns."""
    n, m = draw(st.integers(2, max_rows)), draw(st.integers(1, max_columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    # Grids and units are powers of two: decimal ones would make ties that only
    # the rounding of sums decides.
    grid = draw(st.sampled_from([1.0, 2.0**-3, 2.0**-40]))
    X = np.round(rng.normal(size=(n, m)) / grid) * grid
    kinds = st.sampled_from(["plain", "offset", "tiny", "huge", "constant", "copy", "outlier"])
    for j in range(m):
        kind = draw(kinds)
        if kind == "offset":
            X[:, j] = 2.0**27 + 2.0**-10 * X[:, j]
        elif kind == "tiny":
            X[:, j] *= 2.0**-333
        elif kind == "huge":
            X[:, j] *= 2.0**333
        elif kind == "constant":
            X[:, j] = 0.1
        elif kind == "copy":
            X[:, j] = X[:, 0]
        elif kind == "outlier":
            X[rng.integers(n), j] = 2.0**20
    return X, rng.random(n) < draw(st.sampled_from([0.1, 0.5]))


@st.composite
def with_holes(draw, full_tables):
    """Remove values from tables: scattered ones, and whole rows, columns and sides."""
    X, is_positive = draw(full_tables)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    is_missing = rng.random(X.shape) < draw(st.sampled_from([0.05, 0.3, 0.8]))
    kinds = st.sampled_from(["scattered", "scattered", "none", "column", "side", "row"])
    for j in range(X.shape[1]):
        kind = draw(kinds)
        if kind == "none":
            is_missing[:, j] = False
        elif kind == "column":
            is_missing[:, j] = True
        elif kind == "side":
            is_missing[is_positive == draw(st.booleans()), j] = True
        elif kind == "row":
            is_missing[rng.integers(len(X))] = True
    return np.where(is_missing, np.nan, X), is_positive


weights = st.sampled_from(["none", "integer", "fractional"])


def make_weight(kind, n):
    """Return weights of a kind, as the core gets them: resolved, all positive."""
    rng = np.random.default_rng(n)
    if kind == "integer":
        return rng.integers(1, 4, n).astype(float)
    if kind == "fractional":
        return reference.resolve_weight(rng.uniform(0.1, 3.0, n))
    return None


params = st.builds(
    reference.Params,
    alpha=st.sampled_from([0.0, 0.0, 0.45]),
    beta=st.sampled_from([0.0, 0.45, 0.5, 1.0]),
    gamma=st.sampled_from([1.0, 2.0, 3.0, 1000.0]),
    min_samples_split=st.sampled_from([2.0, 2.0, 5.0]),
    max_depth=st.sampled_from([None, None, 0, 1, 3]),
    min_weight_fraction_leaf=st.sampled_from([0.0, 0.0, 0.2]),
    min_samples_leaf=st.sampled_from([0.0, 0.0, 0.0, 3.0]),
    max_leaf_nodes=st.sampled_from([None, None, None, 2, 4]),
    n_columns=st.sampled_from([None, None, 2]),
)

candidate_params = st.builds(
    reference.Params,
    alpha=st.sampled_from([0.0, 0.0, 0.45]),
    beta=st.sampled_from([0.0, 0.0, 0.45]),
    min_samples_split=st.sampled_from([2.0, 2.0, 5.0]),
    max_depth=st.sampled_from([None, None, 2]),
    min_weight_fraction_leaf=st.sampled_from([0.0, 0.0, 0.2]),
    min_samples_leaf=st.sampled_from([0.0, 0.0, 0.0, 3.0]),
    max_leaf_nodes=st.sampled_from([None, None, None, 2, 4]),
    n_columns=st.sampled_from([None, 2, 5]),
    contrast=st.sampled_from(["mean", "standardized", "fisher"]),
    criterion=st.sampled_from(["purity", "gini", "gini"]),
    n_hyperplanes=st.sampled_from([1, 1, 3]),
    axis_splits=st.booleans(),
)
