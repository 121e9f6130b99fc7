"""Projections that are guessed change no bit of a tree or an answer.

A least weight of leaves, however small, has every training row projected: the same trees must
grow. A row that is asked alone has one hyperplane at a time: it must get the same answer.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from forests import assert_same_model
from lhtree import LHForestClassifier, LHTClassifier

N_ROWS = 5000  # the projections of so many are not kept
N_COLUMNS = 17  # narrower tables are projected in full; one more than whole lanes


def make_normal(rng):
    X = rng.normal(size=(N_ROWS, N_COLUMNS))
    return X, (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=N_ROWS) > 0.5).astype(int)


def make_distant(rng):
    X, y = make_normal(rng)
    return X * 10.0 ** rng.integers(-3, 4, N_COLUMNS) + 1e5 * rng.normal(size=N_COLUMNS), y


def make_integers(rng):
    X = rng.integers(0, 4, size=(N_ROWS, N_COLUMNS)).astype(float)
    return X, (X[:, :5].sum(axis=1) + rng.integers(0, 3, N_ROWS) > 8).astype(int)


def make_repeated(rng):
    X, y = make_normal(rng)
    return np.tile(X[:500], (10, 1)), np.tile(y[:500], 10)


def make_outliers(rng):
    X, y = make_normal(rng)
    X[rng.integers(0, N_ROWS, 20), rng.integers(0, N_COLUMNS, 20)] *= 1e6
    return X, y


def make_one_long_row(rng):
    X, y = make_normal(rng)
    X[7] *= 1e45  # its length is beyond single precision, so the longest row makes none sure
    return X, y


def make_huge(rng):
    X, y = make_normal(rng)
    return X * 1e60, y  # lengths are beyond single precision


def make_long(rng):
    X, y = make_normal(rng)
    return X * 1e13, y  # some rows of the tests are too long for guesses, others are not


def make_tiny(rng):
    X, y = make_normal(rng)
    return X * 1e-60, y


def make_noise(rng):
    X, y = make_normal(rng)
    return X, rng.permutation(y)


MAKERS = [
    make_normal, make_distant, make_integers, make_repeated, make_outliers, make_one_long_row,
    make_huge, make_long, make_tiny, make_noise,
]  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("beta", [0.0, 0.4])
def test_guessed_projections_change_no_tree(maker, standardize, beta):
    X, y = maker(np.random.default_rng(0))
    options = {"beta": beta, "standardize": standardize, "gamma": 1}
    model = LHTClassifier(**options).fit(X, y)
    in_full = LHTClassifier(min_weight_fraction_leaf=1e-300, **options).fit(X, y)
    assert_same_model(model, in_full)


@pytest.mark.parametrize("contrast", ["mean", "standardized"])
def test_guessed_projections_change_no_forest_of_weighted_float32_rows(contrast):
    rng = np.random.default_rng(1)
    X, y = make_normal(rng)
    options = {"preset": "paper", "contrast": contrast, "n_estimators": 3, "random_state": 0}
    weight = rng.integers(1, 4, len(y))
    X = X.astype(np.float32)
    model = LHForestClassifier(**options).fit(X, y, weight)
    in_full = LHForestClassifier(min_weight_fraction_leaf=1e-300, **options).fit(X, y, weight)
    assert_same_model(model, in_full)


@pytest.mark.parametrize("scale", [1e36, 3e36, 1e37])
def test_projections_beyond_single_precision_change_no_tree(scale):
    """Rows are short enough for guesses, but some projections overflow what is remembered."""
    rng = np.random.default_rng(1)
    along = rng.exponential(size=5000)
    X = (along[:, None] + 0.2 * rng.normal(size=(5000, 64))) * scale
    y = (rng.random(5000) < 0.2 + 0.6 * (along > 1)).astype(int)
    options = {"standardize": False, "gamma": 2, "max_depth": 6}
    model = LHTClassifier(**options).fit(X, y)
    assert_same_model(model, LHTClassifier(min_weight_fraction_leaf=1e-300, **options).fit(X, y))


@pytest.mark.parametrize(("dtype", "is_weighted"), [("f8", False), ("f8", True), ("f4", False)])
def test_guessed_projections_change_no_tree_of_subtrees_in_a_copy(dtype, is_weighted):
    # Of a table that fits into no cache, small subtrees work on a copy of their rows.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(9000, 260 if dtype == "f8" else 520)).astype(dtype)
    assert X.nbytes > 1 << 24
    y = (np.abs(X[:, :3]).sum(axis=1) > 2).astype(int)
    weight = rng.integers(1, 4, len(y)) if is_weighted else None
    model = LHTClassifier(standardize=False).fit(X, y, weight)
    in_full = LHTClassifier(standardize=False, min_weight_fraction_leaf=1e-300).fit(X, y, weight)
    assert model.forest_.n_samples[model.forest_.left >= 0].min() < 200  # it is copied
    assert_same_model(model, in_full)


@pytest.mark.parametrize("is_holed", [False, True])
def test_subtrees_in_a_copy_are_those_of_a_table_that_needs_none(is_holed):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9000, 260)).astype(np.float32)
    y = (np.abs(X[:, :3]).sum(axis=1) > 2).astype(int)
    X[rng.random(X.shape) < 0.05 * is_holed] = np.nan
    weight = rng.integers(1, 4, len(y))
    model = LHTClassifier(standardize=False)
    wide, narrow = (clone(model).fit(X.astype(kind), y, weight) for kind in ("f8", "f4"))
    assert X.nbytes < 1 << 24 < 2 * X.nbytes
    assert_same_model(wide, narrow)


def assert_answered_alike(forest, rows, **options):
    many = (*forest.vote(rows, n_classes=2, **options), forest.apply(rows))
    single = [
        (*forest.vote(row, n_classes=2, **options), forest.apply(row)) for row in rows[:, None, :]
    ]
    for answer, answers in zip(many, zip(*single, strict=True), strict=True):
        assert_array_equal(answer, np.concatenate(answers))


@pytest.mark.parametrize("gamma", [1, 100])  # pure pieces are leaves, halves are split on
@pytest.mark.parametrize("n_columns", [16, 17, 300])  # the last are added up in parts
def test_many_rows_are_answered_like_single_ones(n_columns, gamma):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, n_columns))
    y = (X[:, 0] + np.abs(X[:, 1]) + 0.2 * rng.normal(size=2000) > 1).astype(int)
    forest = LHTClassifier(gamma=gamma).fit(X, y).forest_
    assert_answered_alike(forest, rng.normal(size=(700, n_columns)))


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("standardize", [True, False])
def test_rows_on_and_far_from_hyperplanes_are_answered_alike(maker, standardize):
    # Training rows lie on thresholds; integers have several hyperplanes equally near; long and
    # short rows are beyond single precision.
    rng = np.random.default_rng(4)
    X, y = maker(rng)
    forest = LHTClassifier(standardize=standardize, gamma=1).fit(X, y).forest_
    near = X[:300] * (1 + 1e-7 * rng.normal(size=(300, N_COLUMNS)))
    scale, wide_scale = (10.0 ** rng.uniform(-x, x, size=(200, 1)) for x in (4, 240))
    rows = [X[:300], near, X[:200] * scale, X[:200] * wide_scale, np.zeros((2, N_COLUMNS))]
    assert_answered_alike(forest, np.concatenate(rows))


def move_between(model, row):
    """Move a row to where the two hyperplanes of its path that are nearest are equally near."""
    forest, path = model.forest_, model.decision_path(row[None])[0].indices
    split = path[forest.left[path] >= 0]
    weight = forest.weight[forest.start[split, None] + np.arange(N_COLUMNS)]
    normal = weight / forest.norm[split, None]
    gap = normal @ row - forest.threshold[split] / forest.norm[split]
    if len(split) < 2:
        return row
    a, b = np.argsort(np.abs(gap))[:2]
    towards = np.sign(gap[a]) * normal[a], np.sign(gap[b]) * normal[b]
    excess = np.abs(gap[b]) - np.abs(gap[a])
    return row + (towards[0] - towards[1]) * excess / (2 - 2 * towards[0] @ towards[1])


def test_rows_between_hyperplanes_are_answered_alike():
    rng = np.random.default_rng(7)
    X, y = make_normal(rng)
    model = LHTClassifier(standardize=False, gamma=1).fit(X, y)
    rows = [move_between(model, row) for row in rng.normal(size=(400, N_COLUMNS))]
    assert_answered_alike(model.forest_, np.array(rows))


def test_offsets_that_leave_nothing_to_guesses_change_no_answer():
    X, y = make_normal(np.random.default_rng(6))
    X[:, -1] += 1e9
    forest = LHTClassifier(standardize=False, gamma=1).fit(X, y).forest_
    assert_answered_alike(forest, X[:500] + 0.5)


def test_votes_by_margin_and_of_left_out_rows_are_answered_alike():
    X, y = make_normal(np.random.default_rng(5))
    forest = LHForestClassifier(4, preset="paper", random_state=0).fit(X, y).forest_
    assert_answered_alike(forest, X[:200], by_margin=True)
    left_out = np.full((4, 4), 0x5A5A_5A5A_5A5A_5A5A, dtype=np.uint64)  # half of 256 rows
    vote, distance, _ = forest.vote(X[:256], n_classes=2, left_out=left_out)
    is_left_out = np.unpackbits(left_out[0].view(np.uint8), bitorder="little").astype(bool)
    for answer, full in zip((vote, distance), forest.vote(X[:256], n_classes=2), strict=False):
        assert_array_equal(answer[is_left_out], full[is_left_out])
        assert not answer[~is_left_out].any()
