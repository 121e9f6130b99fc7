"""Exports of boosted models at the edges: where rounding, overflow or a sign could decide."""

from functools import cache

import numpy as np
import pytest

from boosted import COLORS, NAMES, fit_boosted, get_scores
from boosted_exports import assert_onnx, assert_sql, run_c
from exports import DATABASES, compile_c
from lhtree.export import to_c

N_ROWS = 150
LARGEST, SMALLEST = np.finfo(float).max, np.finfo(float).smallest_subnormal
EXTREMES = np.array([0.0, 1e300, LARGEST, SMALLEST, np.finfo(float).tiny, 3.5e38, 2.0**53 + 1])
OTHER_COLORS = [*COLORS, None, "unheard of", "", " red", "RED"]


def list_thresholds(model, j):
    """Return the thresholds of a column."""
    trees = model.forest_
    column = trees.column[(trees.left >= 0) & (trees.column >= 0)]
    column = column[trees.columns.n_codes[column] == 0]  # only numbers have thresholds
    return trees.threshold[(column == j) & np.isfinite(trees.threshold)]


def draw_edges(model, j, rng):
    """Return numbers at thresholds and at the ends of grid steps, their neighbours, extremes."""
    columns = model.forest_.columns
    step = rng.integers(columns.low[j] - 3, columns.high[j] + 4, N_ROWS)
    ends = np.ldexp(step + columns.origin[j] - 0.5, -int(columns.power[j]))
    pools = [ends, np.concatenate([EXTREMES, -EXTREMES, [np.nan]])]
    if len(threshold := list_thresholds(model, j)):
        pools += [threshold, threshold]
    drawn = np.array([rng.choice(pools[k]) for k in rng.integers(len(pools), size=N_ROWS)])
    towards = rng.choice([-np.inf, np.inf, 0.0], N_ROWS)
    with np.errstate(over="ignore", under="ignore"):
        moved = np.nextafter(drawn, towards)
    is_moved = (rng.random(N_ROWS) < 2 / 3) & np.isfinite(moved)
    return np.where(is_moved, moved, drawn)


@cache
def fit_with_edges(name, *, has_categories=True):
    """Return a model, and rows of which most numbers are at an edge."""
    rng = np.random.default_rng(0)
    model, X = fit_boosted(name, has_categories=has_categories)
    X = X.head(N_ROWS).copy()
    for j, column in enumerate(X):
        if column == "color":
            X[column] = rng.choice(np.array(OTHER_COLORS, dtype=object), N_ROWS)
        else:
            is_edge = rng.random(N_ROWS) < 0.6
            X[column] = np.where(is_edge, draw_edges(model, j, rng), X[column])
    return model, X


@pytest.mark.parametrize("name", sorted({*NAMES} - {"no tree", "one class"}))
def test_rows_lie_at_thresholds_and_beside_them(name):
    model, X = fit_with_edges(name)
    found = np.zeros(3, dtype=bool)
    for j, column in enumerate(X):
        threshold = np.array([]) if column == "color" else list_thresholds(model, j)
        for k, end in enumerate((-np.inf, None, np.inf)):
            edge = threshold if end is None else np.nextafter(threshold, end)
            found[k] |= X[column].isin(edge).any()
    assert found.all()


@pytest.mark.parametrize("name", NAMES)
def test_c_gives_the_same_bits_at_edges(name, tmp_path):
    model, X = fit_with_edges(name)
    score, _, _ = run_c(compile_c(to_c(model), tmp_path, "-O0"), model, model.encode_rows(X))
    assert score.tobytes() == get_scores(model, X).tobytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("database", DATABASES)
def test_sql_gives_the_same_bits_at_edges(database, name):
    assert_sql(DATABASES[database], *fit_with_edges(name))


@pytest.mark.parametrize("name", NAMES)
def test_onnx_gives_the_same_bits_at_edges(name):
    model, X = fit_with_edges(name)
    assert_onnx(model, model.encode_rows(X), X)


@pytest.mark.parametrize("name", ["numbers", "hyperplanes", "three classes"])
def test_onnx_of_float32_gives_the_same_bits_at_edges(name):
    model, X = fit_with_edges(name, has_categories=False)
    most = float(np.finfo(np.float32).max)
    with np.errstate(under="ignore"):
        rows = X.to_numpy().clip(-most, most).astype(np.float32)
    assert_onnx(model, rows, X.assign(**dict(zip(X, rows.T.astype(float), strict=True))))
