"""Quantiles that early stopping moves, so that they cover other rows as they should."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import train_test_split

from lhtree import LHBoostRegressor, load, save
from lhtree.estimators.params import draw_seed
from lhtree.training.targets import compute_quantile

LEVELS = [0.1, 0.5, 0.9]
SETTINGS: dict[str, Any] = {"quantile": LEVELS, "random_state": 0, "n_jobs": 1}


def make_rows(n, seed=0):
    """Return rows of which there is much to learn, and numbers whose spread follows a column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3] + X[:, 4]) + X[:, 5] * X[:, 6]
    return X, y + np.exp(X[:, 7] / 2) * rng.normal(size=n) / 3


def make(**parameters):
    """Return a model that learns its training rows far too well."""
    settings = SETTINGS | {"learning_rate": 0.3, "early_stopping": True, "tol": 0.0}
    return LHBoostRegressor("quantile", **settings | parameters)


def measure(model, X, y):
    """Return the share of the rows below each quantile."""
    return (np.asarray(y)[:, np.newaxis] < model.predict(X)).mean(axis=0)


def test_quantiles_of_a_real_table_cover_other_rows(load_table):
    table = load_table("regression/cpu_act")
    X, y = table.drop(columns="target"), table["target"]
    shares = []
    for seed in range(3):
        parts = train_test_split(X, y, test_size=0.2, random_state=seed)
        model = LHBoostRegressor("quantile", **SETTINGS).fit(parts[0], parts[2])
        shares.append(measure(model, parts[1], parts[3]))
    assert np.abs(np.mean(shares, axis=0) - LEVELS).max() < 0.02


@pytest.mark.parametrize("refit", [False, True])
def test_quantiles_cover_other_rows(refit):
    X, y = make_rows(6000, 1)
    model = make(refit=refit).fit(*make_rows(3000))
    moved = model.forest_.score(X)
    kept = moved - np.ldexp(np.array(model._shift, dtype=float), -model.forest_.power)
    below_moved, below_kept = (np.mean(y[:, np.newaxis] < each, axis=0) for each in (moved, kept))
    chance = np.sqrt(np.multiply(LEVELS, LEVELS[::-1]) * (1 / 600 + 1 / 6000))  # 600 held out
    assert (np.abs(below_moved - LEVELS) < 3 * chance).all()
    assert below_kept[0] > 0.15
    assert below_kept[2] < 0.85
    for k in (0, 2):
        losses = [mean_pinball_loss(y, each[:, k], alpha=LEVELS[k]) for each in (moved, kept)]
        assert losses[0] < 0.98 * losses[1]


@pytest.mark.parametrize("how", ["held out", "given", "sparse", "offsets"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_shift_is_the_quantile_of_residuals(how, is_weighted):
    X, y = make_rows(1500)
    weight = np.random.default_rng(1).integers(1, 4, 1500) if is_weighted else np.ones(1500, int)
    offset = (X[:, 2:3] if how == "offsets" else np.zeros((1500, 1))) * [1, 0.5, 2]
    kept, held_out = train_test_split(np.arange(1500), test_size=0.3, random_state=draw_seed(0))
    if how == "held out":
        held_out = np.sort(held_out)
        model = make(refit=False, validation_fraction=0.3).fit(X, y, weight)
    else:
        table = sparse.csr_array(X) if how == "sparse" else X
        model = make().fit(
            table[kept], y[kept], weight[kept], init_score=offset[kept], X_val=table[held_out],
            y_val=y[held_out], sample_weight_val=weight[held_out],
            init_score_val=offset[held_out],
        )  # fmt: skip
    forest = model.forest_
    unit = 2.0**forest.power
    target = np.floor(y[held_out] * unit + 0.5) - forest.origin
    score = forest.sum_values(X[held_out]) + forest.base - model._shift
    score = score + np.floor(offset[held_out] * unit + 0.5).astype(int)
    own = weight[held_out]
    for k, level in enumerate(LEVELS):
        residual = target.astype(int) - score[:, k]
        twice = compute_quantile(residual, own, level)
        chance = np.sqrt(level * (1 - level) * own.sum())
        is_far = abs(own[residual < 0].sum() - level * own.sum()) > chance  # no residual is 0
        assert model._shift[k] == is_far * ((twice + 1) // 2)
    assert any(model._shift)


def test_weights_of_validation_rows_are_copies():
    X, y = make_rows(1500)
    weight = np.random.default_rng(1).integers(0, 4, 500)
    weighted = make().fit(X[500:], y[500:], X_val=X[:500], y_val=y[:500], sample_weight_val=weight)
    copies = {"X_val": np.repeat(X[:500], weight, axis=0), "y_val": np.repeat(y[:500], weight)}
    copied = make().fit(X[500:], y[500:], **copies)
    assert any(weighted._shift)
    assert_array_equal(copied.forest_.base, weighted.forest_.base)
    order = np.random.default_rng(2).permutation(500)
    given = {"X_val": X[order], "y_val": y[order], "sample_weight_val": weight[order]}
    assert_array_equal(make().fit(X[500:], y[500:], **given).forest_.base, weighted.forest_.base)


def test_quantiles_stay_where_no_rows_say_when_to_stop():
    X, y = make_rows(600)
    for given in ({}, {"X_val": X, "y_val": y}):
        model = make(early_stopping=False, n_estimators=5).fit(X, y, **given)
        assert not hasattr(model, "_shift")
    assert make().fit(X, np.round(y * 0)).predict(X).tolist() == [[0.0] * 3] * 600


def test_a_model_that_moved_goes_on(tmp_path):
    X, y = make_rows(1500)
    model = make(warm_start=True, n_iter_no_change=2).fit(X, y)
    assert any(model._shift)
    save(model, tmp_path / "model")
    expected = clone(model).set_params(n_iter_no_change=9).fit(X, y)
    for each in (model, load(tmp_path / "model")):
        each.set_params(n_iter_no_change=9).fit(X, y)
        assert each.n_iter_ == expected.n_iter_
        assert each._shift == expected._shift
        assert_array_equal(each.predict(X), expected.predict(X))
    assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
