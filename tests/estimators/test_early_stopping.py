"""Boosting that stops early, and arguments that cannot be right."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.estimators.params import draw_seed

KINDS = pytest.mark.parametrize("kind", [LHBoostClassifier, LHBoostRegressor])


@pytest.fixture
def rows():
    """Return training rows, validation rows and their weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=600) / 2
    return X[:400], y[:400], X[400:], y[400:], rng.integers(1, 4, 200)


def to_target(kind, y):
    """Return classes for a classifier, numbers for a regressor."""
    return (y > 0).astype(int) if kind is LHBoostClassifier else y


def fit_validated(kind, rows, **parameters):
    """Return a model that stopped early by rows of its own."""
    X, y, X_val, y_val, weight = rows
    validation = {"X_val": X_val, "y_val": to_target(kind, y_val), "sample_weight_val": weight}
    model = kind(**{"n_estimators": 400, "random_state": 0, **parameters})
    return model.fit(X, to_target(kind, y), **validation)


@KINDS
@pytest.mark.parametrize("patience", [1, 10])
def test_a_model_goes_back_to_its_best_round(kind, patience, rows):
    model = fit_validated(kind, rows, n_iter_no_change=patience)
    best = int(np.argmax(model.validation_score_))
    assert model.n_iter_ == len(model.trees_) == best
    assert 0 < best < 390
    assert len(model.train_score_) == len(model.validation_score_) == best + patience + 1
    assert (model.train_score_ <= 0).all()
    assert (model.validation_score_ <= 0).all()
    short = kind(n_estimators=best, early_stopping=False, random_state=0)
    short.fit(rows[0], to_target(kind, rows[1]))
    assert_array_equal(short.predict(rows[2]), model.predict(rows[2]))
    assert_array_equal(short.train_score_, model.train_score_[: best + 1])
    assert len(short.validation_score_) == 0


def test_scores_are_minus_the_mean_losses(rows):
    X, y, X_val, y_val, weight = rows
    model = fit_validated(LHBoostClassifier, rows)
    for score, table, target, own in (
        (model.validation_score_, X_val, y_val, weight),
        (model.train_score_, X, y, None),
    ):
        loss = log_loss(target > 0, model.predict_proba(table), sample_weight=own)
        assert -score[model.n_iter_] == pytest.approx(loss, abs=1e-6)
    inside = (y_val > y.min()) & (y_val < y.max())  # others count as the nearest of these
    rows = X, y, X_val[inside], y_val[inside], weight[inside]
    model = fit_validated(LHBoostRegressor, rows)
    error = np.average((model.predict(rows[2]) - rows[3]) ** 2, weights=rows[4])
    assert -2 * model.validation_score_[model.n_iter_] == pytest.approx(error, abs=1e-5)
    error = np.mean((model.predict(X) - y) ** 2)
    assert -2 * model.train_score_[model.n_iter_] == pytest.approx(error, abs=1e-5)


@KINDS
def test_validation_weights_are_copies(kind, rows):
    X, y, X_val, y_val, weight = rows
    copies = X, y, np.repeat(X_val, weight, axis=0), np.repeat(y_val, weight), None
    weighted, copied = fit_validated(kind, rows), fit_validated(kind, copies)
    assert weighted.n_iter_ == copied.n_iter_
    assert_array_equal(weighted.validation_score_, copied.validation_score_)
    some = np.where(np.arange(200) % 2, weight, 0)
    kept = X, y, X_val[1::2], y_val[1::2], weight[1::2]
    dropped = fit_validated(kind, (X, y, X_val, y_val, some))
    assert_array_equal(dropped.validation_score_, fit_validated(kind, kept).validation_score_)


@KINDS
def test_training_and_validation_rows_may_be_sparse_or_dense(kind, rows):
    X, y, X_val, y_val, weight = rows
    X, X_val = (np.where(np.abs(table) < 0.5, 0.0, table) for table in (X, X_val))
    models = [
        fit_validated(kind, (first(X), y, second(X_val), y_val, weight), n_estimators=30)
        for first in (np.asarray, sparse.csr_array)
        for second in (np.asarray, sparse.csc_array)
    ]
    for model in models[1:]:
        assert_array_equal(model.validation_score_, models[0].validation_score_)
        assert_array_equal(model.predict(X), models[0].predict(X))


@KINDS
def test_a_part_of_the_rows_is_held_out(kind, rows):
    X, y = rows[0], to_target(kind, rows[1])
    model = kind(n_estimators=400, early_stopping=True, refit=False, random_state=0)
    model.set_params(validation_fraction=0.1)
    first = clone(model).fit(X, y)
    assert 0 < first.n_iter_ < 390
    assert first.forest_.weight[0] == 360
    assert_array_equal(clone(model).fit(X, y).validation_score_, first.validation_score_)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(other.validation_score_[:2], first.validation_score_[:2])
    less = clone(model).set_params(validation_fraction=0.5).fit(X, y)
    assert less.forest_.weight[0] == 200


@pytest.mark.parametrize(("n", "is_held_out"), [(99, False), (100, True)])
def test_auto_holds_rows_out_from_100_rows_on(n, is_held_out):
    X = np.random.default_rng(0).normal(size=(n, 2))
    model = LHBoostRegressor(n_estimators=2).fit(X, X[:, 0])
    assert (len(model.validation_score_) > 0) == is_held_out


@KINDS
def test_validation_rows_without_stopping_are_scored(kind, rows):
    model = fit_validated(kind, rows, n_estimators=60, early_stopping=False)
    assert model.n_iter_ == 60
    assert len(model.validation_score_) == 61


def test_a_rare_class_may_be_in_one_part_only():
    X = np.random.default_rng(0).normal(size=(300, 3))
    for rare in (1, 2):
        y = np.arange(300) < rare
        model = LHBoostClassifier(early_stopping=True, random_state=0).fit(X, y)
        assert model.predict_proba(X).shape == (300, 2)
        assert model.predict_proba(X)[:, 1].mean() < 0.1


BAD_VALIDATION = [
    ({"X_val": 0}, r"^X_val needs y_val; give both or none\.$"),
    ({"y_val": 0}, r"^y_val needs X_val; give both or none\.$"),
    ({"sample_weight_val": 0}, r"^sample_weight_val needs X_val and y_val; give them, too\.$"),
    ({"y_val": lambda v: v[1:]}, r"^y_val must have one entry per row of X_val, 200, got 199\.$"),
    ({"y_val": lambda v: np.c_[v, v]}, r"^y_val must have one entry per row: .*\(200, 2\)"),
    ({"y_val": lambda v: 3}, "^y_val must have one entry per row"),
    ({"y_val": lambda v: np.ma.array(v, mask=v > 0)}, "^y_val is masked in .* places"),
    ({"X_val": lambda v: v[:, :3]}, "^X_val does not fit: X has 3 features, but .* expecting 5"),
    ({"X_val": lambda v: v[:0]}, "^X_val does not fit: Found array with 0 sample"),
    ({"X_val": lambda v: v.astype(str)[:, :1]}, "^X_val does not fit: X has 1 features"),
    ({"X_val": lambda v: np.where(v > 2, np.inf, v)}, "^X_val does not fit: .*infinity"),
    ({"sample_weight_val": lambda v: v[1:]}, "^sample_weight_val must have one entry .* of X_val"),
    ({"sample_weight_val": lambda v: -v}, "^sample_weight_val must be finite and not negative"),
    ({"sample_weight_val": lambda v: v * 0}, "^sample_weight_val is zero for every row; give"),
    ({"sample_weight_val": lambda v: v * 2**45}, "^sample_weight_val adds up to .*; divide it"),
]


@KINDS
@pytest.mark.parametrize(("changes", "words"), BAD_VALIDATION)
def test_bad_validation_rows_are_refused(kind, changes, words, rows):
    X, y, X_val, y_val, weight = rows
    given = {"X_val": X_val, "y_val": to_target(kind, y_val), "sample_weight_val": weight}
    if 0 in changes.values():  # alone
        given = {name: given[name] for name in changes}
    else:
        given |= {name: alter(given[name]) for name, alter in changes.items()}
    model = kind(n_estimators=2)
    with pytest.raises(ValueError, match=words):
        model.fit(X, to_target(kind, y), **given)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(
    ("kind", "y_val", "words"),
    [
        (LHBoostClassifier, [2] * 200, r"^y_val has the class 2, .* its classes are \[0, 1\]\.$"),
        (LHBoostClassifier, ["a"] * 200, "^y_val has the class 'a', which is not in y"),
        (LHBoostClassifier, [np.nan] * 200, "^y_val has the class nan, which is not in y"),
        (LHBoostClassifier, [None] * 200, "^y_val must have a label for every row, got None"),
        (LHBoostRegressor, [np.nan] * 200, "^y_val must be finite numbers; leave out rows"),
        (LHBoostRegressor, [np.inf] * 200, "^y_val must be finite numbers; leave out rows"),
        (LHBoostRegressor, ["a"] * 200, "^y_val must be numbers, got text such as 'a'"),
        (LHBoostRegressor, np.zeros(200, "M8[D]"), "^y_val holds dates or time differences"),
    ],
)
def test_bad_validation_targets_are_refused(kind, y_val, words, rows):
    X, y, X_val, *_ = rows
    with pytest.raises(ValueError, match=words):
        kind(n_estimators=2).fit(X, to_target(kind, y), X_val=X_val, y_val=y_val)


@pytest.mark.parametrize(
    ("parameters", "n_rows", "words"),
    [
        ({}, 1, r"^early_stopping=True needs at least 2 rows, .* got 1; give more rows or set"),
        ({"validation_fraction": 0.999}, 100, r"^validation_fraction=0\.999 leaves none of the "),
    ],
)
def test_too_few_rows_to_hold_some_out_are_refused(parameters, n_rows, words, rows):
    model = LHBoostRegressor(early_stopping=True, **parameters)
    with pytest.raises(ValueError, match=words):
        model.fit(rows[0][:n_rows], rows[1][:n_rows])


PARAMETERS: list[tuple[str, list[Any], str]] = [
    ("loss", ["squared", None, 1], "one of "),
    ("learning_rate", [0, -0.1, np.nan, np.inf, "a", None], "a number above 0, or 'auto'"),
    ("n_estimators", [0, 2.0, "many", 2**24 + 1, True, None], "from 1 to 16777216, or 'auto'"),
    ("max_leaf_nodes", [1, 40_000, 2.0, "all", None], "from 2 to 32768, or 'auto'"),
    ("max_depth", [0, 2.0, "a"], "an integer of at least 1, or None"),
    ("min_samples_leaf", [0, 0.1, None, 10**400], "an integer of at least 1"),
    ("l2_regularization", [-1, np.inf, np.nan, "a", None], "a number of at least 0"),
    ("n_hyperplanes", [-1, 128, 1.0, None], "an integer from 0 to 127"),
    ("max_terms", [1, 129, "sqrt", None], "an integer from 2 to 128, or 'auto'"),
    ("subsample", [0, -0.5, 1.1, np.nan, "all", None], "a share of the rows above 0, and at"),
    ("max_features", [0, 1.5, "auto", np.nan, True], "'sqrt', 'log2' or None"),
    ("max_bins", [1, 256, 16.0, None], "an integer from 2 to 255"),
    ("max_categories", [1, 256, 2.0, None], "an integer from 2 to 255"),
    ("early_stopping", [None, 1, "never"], "True, False or 'auto'"),
    ("refit", [None, 1, "never"], "True, False or 'auto'"),
    ("validation_fraction", [0, 1, 1.0, 20, "all", None], "between 0 and 1, or 'auto'"),
    ("n_iter_no_change", [0, 1.5, None], "an integer of at least 1"),
    ("scoring", ["x", 1, np.ones(2), []], "a name that sklearn.metrics.get_scorer_names() lists"),
    ("verbose", ["yes", None, np.ones(2), [1]], "a number; 0 prints nothing"),
    ("interaction_cst", [np.array(3), 1, "all"], "'no_interactions' or a list of sets of columns"),
    ("n_jobs", [0, 1.5, "a"], "a nonzero integer, or None for all cores"),
    ("random_state", ["a", -1, 2**32], "None, an integer from 0 to 2\\*\\*32 - 1 or a"),
]


@KINDS
@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [(name, value, wanted) for name, values, wanted in PARAMETERS for value in values],
)
def test_bad_parameters_are_refused(kind, name, value, wanted, rows):
    model = kind(**{name: value})
    with pytest.raises((TypeError, ValueError)) as caught:
        model.fit(rows[0], to_target(kind, rows[1]))
    assert str(caught.value).startswith(f"{name} must be ")
    assert wanted.replace("\\", "") in str(caught.value)
    assert repr(value) in str(caught.value)
    assert not [each for each in vars(model) if each.endswith("_")]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("heavy", "class_weight must be None, a dict .* got 'heavy'"),
        ("balanced_subsample", "class_weight must be None, a dict .* got 'balanced_subsample'"),
        ({0: -1}, "class_weight must hold finite numbers of at least 0, got -1 for the class 0"),
        ({7: 1}, "class_weight names the class 7, which is not in y"),
        ({0: 0, 1: 0}, "leaves no row with a positive weight"),
    ],
)
def test_bad_class_weights_are_refused(value, words, rows):
    with pytest.raises(ValueError, match=words):
        LHBoostClassifier(class_weight=value).fit(rows[0], to_target(LHBoostClassifier, rows[1]))


def test_more_classes_than_the_core_takes_are_refused():
    y = np.tile(np.arange(2**16 + 1), 2)
    with pytest.raises(ValueError, match=r"^y must have at most 65536 classes, got 65537; join"):
        LHBoostClassifier().fit(np.zeros((len(y), 1)), y)


@pytest.mark.parametrize("is_given", [False, True])
def test_many_classes_stop_early(is_given, rows):
    X, y, X_val, y_val, weight = rows
    y, y_val = np.digitize(y, [-0.5, 0.5]), np.digitize(y_val, [-0.5, 0.5])
    model = LHBoostClassifier(n_estimators=400, early_stopping=True, refit=False)
    model.set_params(validation_fraction=0.1, random_state=0)
    given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": weight} if is_given else {}
    model.fit(X, y, **given)
    best = int(np.argmax(model.validation_score_))
    assert 0 < model.n_iter_ == len(model.trees_) == best < 390
    assert model.forest_.weight[0] == (400 if is_given else 360)
    if is_given:
        loss = log_loss(y_val, model.predict_proba(X_val), sample_weight=weight)
        assert -model.validation_score_[best] == pytest.approx(loss, abs=1e-6)
        with pytest.raises(ValueError, match=r"^y_val has the class 3, .* are \[0, 1, 2\]\.$"):
            model.fit(X, y, X_val=X_val, y_val=y_val + 1)


@pytest.mark.parametrize("kind", ["two", "many", "numbers"])
def test_held_out_rows_teach_nothing(kind, rows):
    X, y = rows[0].copy(), rows[1]
    X[::7, 1] = np.nan
    model = (LHBoostRegressor if kind == "numbers" else LHBoostClassifier)(random_state=0)
    model.set_params(n_estimators=20, early_stopping=True, n_iter_no_change=30, refit=False)
    model.set_params(validation_fraction=0.1)
    target = {"two": y > 0, "many": np.digitize(y, [-0.5, 0.5]), "numbers": y}[kind]
    first = clone(model).fit(X, target)
    classes = None if kind == "numbers" else target
    kept, held_out = train_test_split(
        np.arange(400), test_size=0.1, random_state=draw_seed(0), stratify=classes
    )
    X[held_out] = 1e9
    second = clone(model).fit(X, target)
    assert_array_equal(second.train_score_, first.train_score_)
    assert not np.array_equal(second.validation_score_, first.validation_score_)
    whole = clone(model).set_params(early_stopping=False)
    whole.set_params(n_estimators=first.n_iter_).fit(X[kept], target[kept])
    assert_array_equal(whole.predict(X[kept]), first.predict(X[kept]))


def test_every_one_of_many_classes_keeps_a_training_row():
    X, y = np.arange(40.0)[:, None], np.minimum(np.arange(40), 5)
    for seed in range(10):
        model = LHBoostClassifier(early_stopping=True, n_estimators=3, random_state=seed)
        assert np.isfinite(model.fit(X, y).forest_.base).all()
        assert model.predict_proba(X).shape == (40, 6)


@pytest.mark.parametrize("y", [np.zeros(400, "M8[D]"), np.zeros(400, "m8[s]")])
def test_dates_are_not_numbers_to_predict(y, rows):
    with pytest.raises(ValueError, match=r"^y holds dates or time differences"):
        LHBoostRegressor().fit(rows[0], y)


@KINDS
def test_a_refused_fit_leaves_the_model_as_it_was(kind, rows):
    X, y = rows[0], to_target(kind, rows[1])
    model, again = (kind(n_estimators=3, random_state=0) for _ in range(2))
    model.fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="X_val does not fit"):
        model.fit(X[:, :2], y, X_val=X, y_val=y)
    assert vars(model) == before
    assert_allclose(model.predict(X), again.fit(X, y).predict(X))
