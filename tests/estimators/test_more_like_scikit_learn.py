"""More of what scikit-learn's tests of HistGradientBoosting demand, from weights to rounds."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import OneHotEncoder

from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.estimators.boosting import scoring as scoring_module
from lhtree.estimators.constraints import resolve_groups
from lhtree.model.ensemble import Ensemble

ROUNDS: dict[str, Any] = {
    "n_estimators": 100,
    "learning_rate": 0.1,
    "max_leaf_nodes": 31,
    "early_stopping": False,
    "random_state": 0,
    "n_jobs": 1,
}
SHORT = ROUNDS | {"n_estimators": 10}
KINDS = pytest.mark.parametrize("kind", [LHBoostClassifier, LHBoostRegressor])
LIBRARIES = pytest.mark.parametrize("library", ["pandas", "polars"])


def make_rows(kind, n_classes=2, n_samples=100):
    """Return rows and targets that a kind of model predicts."""
    if kind is LHBoostRegressor:
        return make_regression(n_samples=n_samples, random_state=0)
    return make_classification(
        n_samples=n_samples, n_classes=n_classes, n_informative=4, random_state=0
    )


# ---- losses and weights --------------------------------------------------------


def test_absolute_errors_are_learned():
    X, y = make_rows(LHBoostRegressor, n_samples=500)
    model = LHBoostRegressor("absolute_error", n_hyperplanes=0, **ROUNDS).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_classes_and_of_rows_are_multiplied(n_classes):
    X, y = make_rows(LHBoostClassifier, n_classes)
    weight, class_weight = np.arange(100) % 2 + 0.5, [1.0, 3.0, 2.0]
    model = LHBoostClassifier(class_weight=dict(enumerate(class_weight[:n_classes])), **SHORT)
    product = weight * np.take(class_weight, y)
    expected = clone(model).set_params(class_weight=None).fit(X, y, product)
    found = model.fit(X, y, weight).decision_function(X)
    assert_array_equal(found, expected.decision_function(X))


@KINDS
def test_a_constant_target_grows_no_split(kind):
    X, y = make_rows(kind)
    model = kind(**SHORT).fit(X, np.ones_like(y))
    assert all(tree.n_nodes == 1 for tree in model.trees_)
    assert not model.forest_.value.any()


# ---- missing values and categories ---------------------------------------------


def test_that_a_value_is_missing_may_be_all_there_is_to_know():
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(100, 1)), rng.rand(100) < 0.5
    X[y] = np.nan
    model = LHBoostClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) == 1
    assert model.predict([[np.nan], [0.0], [1e300]]).tolist() == [True, False, False]


def test_one_split_of_categories_is_several_of_their_indicators():
    rng = np.random.RandomState(0)
    X = np.column_stack([rng.rand(6000), rng.randint(6, size=6000)])
    y = X[:, 1] % 2 == 0
    indicators = OneHotEncoder(sparse_output=False).fit_transform(X[:, 1:])
    X = np.hstack([X[:, :1], indicators])
    model = LHBoostClassifier(n_hyperplanes=0, **ROUNDS | {"n_estimators": 1, "max_depth": 2})
    assert cross_val_score(model, X, y).mean() < 0.9
    assert cross_val_score(model.set_params(max_depth=3), X, y).mean() == 1


@KINDS
@LIBRARIES
def test_categories_of_a_frame_are_like_numbers_of_categories(kind, library):
    module = pytest.importorskip(library)
    rng = np.random.RandomState(42)
    number, code = rng.rand(3000), rng.randint(50, size=3000)
    y = ((code % 3 == 0) & (number > 0.2)).astype(int)
    names = np.array([f"no. {k:02}" for k in range(50)], dtype=object)
    frame = module.DataFrame({"number": number, "kind": names[code]})
    rows = np.column_stack([number, code])
    expected = kind(categorical_features=[False, True], **SHORT).fit(rows, y)
    model = kind(**SHORT).fit(frame, y)
    assert model.columns_.categories[0].values == tuple(names)
    assert [tree.n_nodes for tree in model.trees_] == [tree.n_nodes for tree in expected.trees_]
    assert_array_equal(model.predict(frame), expected.predict(rows))
    assert model.score(frame, y) == expected.score(rows, y)


@KINDS
@pytest.mark.parametrize("given", [[False, False], [], np.array([False, False]), np.array([])])
def test_no_column_may_be_one_of_categories(kind, given):
    X, y = np.arange(10).reshape(5, 2), np.arange(5)
    model = kind(categorical_features=given).fit(X, y)
    assert model.columns_.is_plain
    assert_array_equal(model.predict(X), kind().fit(X, y).predict(X))


@KINDS
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([b"hello", b"world"], "b'hello' is neither a name nor a position"),
        (np.array([b"hello", 1.3], dtype=object), "b'hello' is neither a name nor a position"),
        ([0, -1], "-1 is not a position from 0 to 3"),
        ([0, 4], "4 is not a position from 0 to 3"),
        ([True] * 5, "does not have one entry for each of the 4 columns"),
        (["f0"], "'f0' is not a column of X"),
        ((j for j in (0, 1)), "is not a list"),
    ],
)
def test_columns_of_categories_that_are_not_there_are_refused(kind, given, words):
    X = np.random.RandomState(0).randint(10, size=(100, 4)).astype(float)
    with pytest.raises(ValueError, match=f"^categorical_features must be .*{words}"):
        kind(categorical_features=given).fit(X, X[:, 0] % 2)


@KINDS
def test_a_column_of_more_categories_than_bins_is_joined_not_refused(kind):
    X = np.arange(300.0).reshape(100, 3)
    model = kind(categorical_features=[0], max_categories=16, n_estimators=2).fit(X, X[:, 0] > 90)
    assert len(model.columns_.categories[0].values) == 15
    assert len(model.columns_.categories[0].merged) == 85


# ---- trends and groups -----------------------------------------------------------


@pytest.mark.parametrize("is_named", [False, True])
def test_trends_belong_to_their_columns_beside_categories(is_named):
    rng = np.random.RandomState(0)
    X = rng.randint(9, size=(1000, 5)).astype(float)
    up, down = rng.rand(2, 1000)
    X[:, 1], X[:, 3] = up, down
    y = 5 * up + np.sin(10 * np.pi * up) - 5 * down - np.cos(10 * np.pi * down)
    given: dict[str, Any] = {
        "monotonic_cst": [0, 1, 0, -1, 0], "categorical_features": [0, 2, 4],
    }  # fmt: skip
    columns = None
    if is_named:
        pd = pytest.importorskip("pandas")
        given = {"monotonic_cst": {"b": 1, "d": -1}, "categorical_features": ["a", "c", "e"]}
        columns = list("abcde")

    def to_table(rows):
        return rows if columns is None else pd.DataFrame(rows, columns=columns)

    model = LHBoostRegressor(**ROUNDS | given)
    model.fit(to_table(X), y + rng.normal(scale=0.01, size=1000))
    for j, sign in ((1, 1), (3, -1)):
        rows = np.full((100, 5), 0.5)
        rows[:, ::2] = 4  # a known category
        rows[:, j] = np.linspace(0, 1, 100)
        rise = sign * np.diff(model.predict(to_table(rows)))
        assert (rise >= 0).all()
        assert rise.sum() > 2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("trend", [0, 1, -1])
def test_each_tree_follows_the_trend_of_its_column(trend, seed):
    rng = np.random.RandomState(seed)
    X, y = rng.rand(1000, 1), rng.normal(size=1000)
    model = LHBoostRegressor(monotonic_cst=[trend], **SHORT).fit(X, y)
    grid = np.linspace(0, 1, 2000)[:, None]
    rises = [np.diff(stage) for stage in model.staged_predict(grid)]
    if trend:
        for rise in np.diff([0 * rises[0], *rises], axis=0):  # of each tree
            assert (trend * rise >= -1e-12).all()
    else:
        assert rises[-1].min() < 0 < rises[-1].max()


@pytest.mark.parametrize(
    ("given", "n_columns", "expected"),
    [
        (None, 931, ()),
        ([{0, 1}], 2, ((0, 1),)),
        ("pairwise", 2, ((0, 1),)),
        ("pairwise", 4, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))),
        ("no_interactions", 2, ((0,), (1,))),
        ("no_interactions", 4, ((0,), (1,), (2,), (3,))),
        ([(1, 0), [5, 1]], 6, ((0, 1), (1, 5), (2, 3, 4))),
    ],
)
def test_groups_are_those_given_and_one_of_the_rest(given, n_columns, expected):
    names = [f"x{j}" for j in range(n_columns)]
    assert resolve_groups(given, names, np.arange(n_columns)) == expected


# ---- rounds ----------------------------------------------------------------------


@pytest.mark.parametrize("scoring", ["a scorer", None, "loss"])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_small_tables_stop_early_by_any_score(scoring, n_classes):
    kind = LHBoostClassifier if n_classes else LHBoostRegressor
    if scoring == "a scorer":
        scoring = "accuracy" if n_classes else "neg_mean_squared_error"
    X, y = make_rows(kind, n_classes, n_samples=50)
    model = kind(scoring=scoring, **ROUNDS | {"early_stopping": True, "n_iter_no_change": 5})
    model.set_params(min_samples_leaf=5, n_estimators=300, refit=False, learning_rate=0.5)
    best = np.argmax(model.fit(X, y).validation_score_)
    assert model.n_iter_ == best
    assert len(model.validation_score_) == best + 6 < 300


def test_training_rows_that_are_scored_have_the_shares_of_all_classes(monkeypatch):
    monkeypatch.setattr(scoring_module, "MOST_TRAINING_ROWS", 100)
    y = np.repeat(range(4), [20, 40, 60, 80])
    seen = []
    model = LHBoostClassifier(scoring=lambda m, X, y: seen.append(y) or 0.0, **SHORT)
    model.fit(np.random.RandomState(0).normal(size=(200, 1)), y)
    assert all(np.bincount(drawn).tolist() == [10, 20, 30, 40] for drawn in seen)


@KINDS
@pytest.mark.parametrize("is_named", [False, True])
def test_scores_after_each_round_cost_no_walk_down_the_trees(kind, is_named, monkeypatch):
    X, y = make_rows(kind)
    seen = []

    def score(model, X, y, sample_weight):
        seen.append(sample_weight.sum())
        return model.score(X, y, sample_weight)

    given = ("accuracy" if kind is LHBoostClassifier else "r2") if is_named else score
    model = kind(scoring=given, early_stopping=True, refit=False, n_estimators=2, random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr(Ensemble, "score", lambda *_, **__: pytest.fail("rows walk again"))
        model.fit(X, y, np.full(len(y), 2.0))
    assert seen == ([] if is_named else [160.0, 40.0] * 3)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_stages_are_the_predictions_of_shorter_fits(n_classes):
    kind = LHBoostClassifier if n_classes else LHBoostRegressor
    X, y = make_rows(kind, n_classes)
    model = kind(**SHORT)
    names = ["predict", *["predict_proba", "decision_function"] * bool(n_classes)]
    for name in names:
        with pytest.raises(NotFittedError):
            next(iter(getattr(model, f"staged_{name}")(X)))
    model.fit(X[:50], y[:50])
    for n_rounds in (1, 4, 10):
        short = clone(model).set_params(n_estimators=n_rounds).fit(X[:50], y[:50])
        for name in names:
            stages = list(getattr(model, f"staged_{name}")(X[50:]))
            assert len(stages) == 10
            assert_array_equal(stages[n_rounds - 1], getattr(short, name)(X[50:]))


@KINDS
def test_rounds_that_are_added_may_have_deeper_trees(kind):
    X, y = make_rows(kind)
    model = kind(max_depth=2, min_samples_leaf=1, warm_start=True, **SHORT).fit(X, y)
    model.set_params(max_depth=3, n_estimators=15).fit(X, y)
    assert [tree.depth for tree in model.trees_] == [2] * 10 + [3] * 5


@KINDS
@pytest.mark.parametrize("scoring", [None, "loss"])
def test_a_fit_that_stopped_early_has_nothing_to_add(kind, scoring):
    X, y = make_rows(kind)
    model = kind(early_stopping=True, warm_start=True, scoring=scoring, random_state=0)
    model.set_params(n_estimators=10_000, n_iter_no_change=5, tol=1e-3).fit(X, y)
    n_rounds, predicted = model.n_iter_, model.predict(X)
    model.fit(X, y)
    assert model.n_iter_ == n_rounds < 9000
    assert_array_equal(model.predict(X), predicted)


@KINDS
def test_a_fit_without_a_warm_start_forgets_the_one_before(kind):
    X, y = make_rows(kind)
    expected = kind(n_iter_no_change=5, refit=False, random_state=42).fit(X, y)
    model = clone(expected).set_params(warm_start=True).fit(X, y)
    model.set_params(warm_start=False).fit(X, y)
    assert_array_equal(model.train_score_, expected.train_score_)
    assert_array_equal(model.validation_score_, expected.validation_score_)
    assert_array_equal(model.predict(X), expected.predict(X))


@KINDS
def test_two_fits_by_the_same_generator_draw_differently(kind):
    X, y = make_rows(kind)
    model = kind(early_stopping=True, n_estimators=2)
    seeds = {}
    for name, state in {
        "none": None,
        "integer": 42,
        "generator": np.random.RandomState(0),
    }.items():
        model.set_params(random_state=state)
        seeds[name] = [model.fit(X, y)._seed for _ in range(2)]
    assert len({*seeds["none"]}) == len({*seeds["generator"]}) == 2
    assert len({*seeds["integer"]}) == 1
    again = model.set_params(random_state=np.random.RandomState(0)).fit(X, y)
    assert again._seed == seeds["generator"][0]
