"""What scikit-learn's own tests of HistGradientBoosting demand, where it is meant here, too."""

import re
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import make_classification, make_low_rank_matrix, make_regression
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import mean_gamma_deviance, mean_pinball_loss, mean_poisson_deviance
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.estimators.params import draw_seed


@pytest.fixture(autouse=True)
def one_thread():
    """Their threads wait for each other, for long where tests share processors."""
    with threadpool_limits(1):
        yield


# Where a test means as many rounds, of the same rate, as theirs have by default.
ROUNDS: dict[str, Any] = {
    "n_estimators": 100,
    "learning_rate": 0.1,
    "max_leaf_nodes": 31,
    "early_stopping": False,
    "random_state": 0,
}
KINDS = pytest.mark.parametrize("kind", [LHBoostClassifier, LHBoostRegressor])


# ---- the same trees, where both define the same ----------------------------


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "log_loss"])
@pytest.mark.parametrize("max_leaf_nodes", [4, 12])
def test_trees_by_single_columns_predict_like_theirs(loss, max_leaf_nodes):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, size=(1500, 5)) / 10.0
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 20 + rng.normal(size=1500)
    shared: dict[str, Any] = {
        "max_leaf_nodes": max_leaf_nodes,
        "l2_regularization": 0.0,
        "learning_rate": 0.1,
        "early_stopping": False,
    }
    if loss == "log_loss":
        y = np.where(y > 1, 1.0, 0.0)
        theirs = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=20, **shared)
        ours = LHBoostClassifier(n_estimators=5, min_samples_leaf=20, n_hyperplanes=0, **shared)
        found, expected = (each.fit(X, y).decision_function(X).ravel() for each in (ours, theirs))
    else:
        theirs = HistGradientBoostingRegressor(loss, max_iter=5, min_samples_leaf=20, **shared)
        ours = LHBoostRegressor(
            loss, n_estimators=5, min_samples_leaf=20, n_hyperplanes=0, **shared
        )
        found, expected = (each.fit(X, y).predict(X) for each in (ours, theirs))
    assert np.mean(np.abs(found - expected) < 1e-3) > 0.97  # ties may be split otherwise


# ---- losses ------------------------------------------------------------------


def make_log_linear(n_features, low, high, draw, seed):
    """Return training and test rows, and numbers whose means are exponentials of sums."""
    rng = np.random.RandomState(seed)
    X = make_low_rank_matrix(n_samples=2000, n_features=n_features, random_state=rng)
    coef = rng.uniform(low=low, high=high, size=n_features)
    y = draw(rng, np.exp(X @ (coef if low < -5 else coef / X.max(axis=0))))
    return train_test_split(X, y, test_size=1000, random_state=rng)


MEANS = {
    "poisson": (20, -1, 1, lambda rng, mean: rng.poisson(mean), mean_poisson_deviance),
    "gamma": (20, -10, 20, lambda rng, mean: rng.gamma(2, mean / 2), mean_gamma_deviance),
}


@pytest.mark.parametrize("loss", MEANS)
@pytest.mark.parametrize("seed", range(3))
def test_counts_and_amounts_have_losses_of_their_own(loss, seed):
    *how, deviance = MEANS[loss]
    X, X_test, y, y_test = make_log_linear(*how, seed)
    least = max(1e-15, y.min())

    def measure(model, rows=X_test, target=y_test):
        return deviance(target, np.maximum(model.predict(rows), least))

    single, squares = (
        LHBoostRegressor(each, min_samples_leaf=20, n_hyperplanes=0, **ROUNDS).fit(X, y)
        for each in (loss, "squared_error")
    )
    assert measure(single) < measure(squares)
    assert measure(single) < measure(DummyRegressor().fit(X, y))
    assert measure(single, X, y) < measure(DummyRegressor().fit(X, y), X, y)
    theirs = HistGradientBoostingRegressor(loss=loss).fit(X, y)
    ours = LHBoostRegressor(loss, min_samples_leaf=20, random_state=0).fit(X, y)
    assert measure(ours) < measure(theirs)


@pytest.mark.parametrize("level", [0.2, 0.5, 0.8])
def test_quantiles_of_skewed_targets(level):
    rng = np.random.RandomState(42)
    X = np.column_stack([np.abs(rng.randn(10_000)), -rng.randint(2, size=10_000)])
    truth = 0.5 * X[:, 0] - 2 * X[:, 1] + 1.23
    y = rng.exponential(scale=-truth / np.log(1 - level))
    shape = {"n_estimators": 25, "max_leaf_nodes": 10}
    model = LHBoostRegressor("quantile", quantile=level, **ROUNDS | shape)
    predicted = model.fit(X, y).predict(X)
    assert_allclose(np.mean(predicted > y), level, rtol=1e-2)
    loss = mean_pinball_loss(y, predicted, alpha=level)
    assert loss <= mean_pinball_loss(y, truth, alpha=level)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_huge_learning_rate_gives_no_bad_number(n_classes):
    X, y = make_classification(random_state=0, n_classes=n_classes, n_informative=3)
    model = LHBoostClassifier(learning_rate=100, n_estimators=10).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()


# ---- missing values and categories --------------------------------------------


@pytest.mark.parametrize(("share", "least"), [(0.1, (0.97, 0.89)), (0.5, (0.79, 0.52))])
def test_missing_values_cost_little(share, least):
    parameters = {"n_samples": 1000, "n_features": 2, "n_informative": 2, "random_state": 0}
    classes = make_classification(n_redundant=0, n_repeated=0, **parameters)
    for (X, y), kind, expected in zip(
        (classes, make_regression(**parameters)), (LHBoostClassifier, LHBoostRegressor), least,
        strict=True,
    ):  # fmt: skip
        X[np.random.RandomState(0).binomial(1, share, size=X.shape) > 0] = np.nan
        assert kind(**ROUNDS).fit(X, y).score(X, y) > expected


class BothEnds(TransformerMixin, BaseEstimator):
    """Twice the columns, with missing values below and above all others."""

    def fit(self, X, y=None):
        """Learn the range of the columns."""
        self.low_, self.high_ = np.nanmin(X, axis=0) - 1, np.nanmax(X, axis=0) + 1
        return self

    def transform(self, X):
        """Return both versions of the columns."""
        return np.hstack([np.where(np.isnan(X), end, X) for end in (self.low_, self.high_)])


def test_missing_values_are_tried_on_both_sides():
    rng = np.random.RandomState(0)
    X = rng.randint(0, 42, size=(4000, 4)).astype(float)
    y = X @ [3, -2, 1, 2] + rng.normal(size=4000)
    X[rng.rand(4000) > 0.9, 0] = np.nan
    X[X[:, 1] == 0, 1] = np.nan
    X[X[:, 2] == 41, 2] = np.nan
    X[y > np.percentile(y, 70), 3] = np.nan
    shape = {"n_estimators": 50, "max_leaf_nodes": 5}
    model = LHBoostRegressor(n_hyperplanes=0, **ROUNDS | shape)
    expected = make_pipeline(BothEnds(), clone(model)).fit(X, y)
    assert_allclose(model.fit(X, y).predict(X), expected.predict(X))


def test_one_split_divides_categories_that_alternate():
    rng = np.random.RandomState(0)
    X = np.column_stack([rng.rand(6000), rng.randint(6, size=6000)])
    y = X[:, 1] % 2 == 0
    shape = {"n_estimators": 1, "max_depth": 1}
    model = LHBoostClassifier(n_hyperplanes=0, **ROUNDS | shape)
    for given in ([False, True], [1]):
        assert cross_val_score(model.set_params(categorical_features=given), X, y).mean() == 1
    model.fit(X, y)
    left = set(model.trees_[0].split(0).left)
    assert left - {6} in ({0, 2, 4}, {1, 3, 5})  # 6: missing
    model.set_params(categorical_features=None, max_depth=4)
    assert cross_val_score(model, X, y).mean() < 0.9
    assert cross_val_score(model.set_params(max_depth=5), X, y).mean() == 1


@KINDS
def test_unknown_and_negative_categories_count_as_missing(kind):
    rng = np.random.RandomState(42)
    X = np.column_stack([rng.rand(1000), rng.randint(4, size=1000)])
    model = kind(n_estimators=10, categorical_features=[False, True]).fit(X, X[:, 1] % 2 == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # all are unknown
        found = [model.predict([[0.5, code]])[0] for code in (-2, 30, np.nan)]
    assert len(set(found)) == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_order_of_categories_does_not_matter(library):
    module = pytest.importorskip(library)
    rng = np.random.RandomState(42)
    code = rng.randint(0, 2, size=1000)
    y = np.where(rng.rand(1000) < 0.1, 1 - code, code)
    sizes = []
    for names in (["A", "B"], ["B", "A"]):
        frame = module.DataFrame({"kind": np.array(names, dtype=object)[code]})
        model = LHBoostClassifier(random_state=0).fit(frame, y)
        sizes.append([tree.n_nodes for tree in model.trees_])
    assert sizes[0] == sizes[1]


# ---- tables, weights, sizes ----------------------------------------------------


def test_nullable_integers_are_read():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(10, size=100)})
    y = rng.integers(2, size=100)
    model = LHBoostClassifier(**ROUNDS).fit(frame.astype(pd.Int64Dtype()), y)
    expected = LHBoostClassifier(**ROUNDS).fit(frame, y)
    assert_array_equal(model.predict_proba(frame), expected.predict_proba(frame))


@KINDS
def test_small_integers_are_numbers(kind):
    rng = np.random.RandomState(0)
    X, y = rng.randint(0, 100, size=(50, 2)).astype(np.uint8), rng.randint(0, 2, size=50)
    model = kind(n_estimators=5).fit(X, y.astype(np.uint8))
    assert_array_equal(model.predict(X), model.predict(X.astype(float)))


def test_weights_of_zero_are_absent_rows():
    X, weight = [[1, 0], [1, 0], [1, 0], [0, 1], [1, 1]], [0, 0, 9, 9, 9]
    assert LHBoostRegressor().fit(X, [0, 0, 1, 0, 0], weight).predict([[1, 0]])[0] > 0.5
    for y in ([0, 0, 1, 0, 0], [0, 0, 1, 0, 2]):
        assert LHBoostClassifier().fit(X, y, weight).predict([[1, 0]])[0] == 1


def test_class_weights_are_weights_of_rows():
    X, y = make_classification(
        n_samples=255, n_features=2, n_informative=2, n_redundant=0, n_clusters_per_class=1,
        random_state=0,
    )  # fmt: skip
    model = LHBoostClassifier(min_samples_leaf=2, random_state=0, max_depth=2)
    weight = np.where(y == 1, 3.0, 1.0)
    weight /= weight.mean()  # class weights keep the sum
    weighted = clone(model).set_params(class_weight={0: 1.0, 1: 3.0}).fit(X, y)
    expected = model.fit(X, y, weight).predict_proba(X)
    assert_allclose(weighted.predict_proba(X), expected, atol=1e-3)
    kept = (y == 0) | (np.cumsum(y) <= 10)
    X, y = X[kept], y[kept]
    weight = (len(y) / (2 * np.bincount(y)))[y]
    balanced = clone(model).set_params(class_weight="balanced").fit(X, y)
    expected = model.fit(X, y, weight).predict_proba(X)
    assert_allclose(balanced.predict_proba(X), expected, atol=1e-3)


@KINDS
@pytest.mark.parametrize("is_weighted", [False, True])
def test_validation_rows_are_like_a_part_held_out(kind, is_weighted):
    rng = np.random.RandomState(42)
    X = rng.normal(size=(400, 5))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=400) / 2
    y = (y > 0).astype(int) if kind is LHBoostClassifier else y
    weight = rng.randint(1, 4, size=400) if is_weighted else np.ones(400, dtype=int)
    model = kind(early_stopping=True, validation_fraction=0.5, refit=False, random_state=3)
    expected = clone(model).fit(X, y, weight)
    kept, held_out = train_test_split(
        np.arange(400), test_size=0.5, random_state=draw_seed(3),
        stratify=y if kind is LHBoostClassifier else None,
    )  # fmt: skip
    kept, held_out = np.sort(kept), np.sort(held_out)
    model.fit(
        X[kept], y[kept], weight[kept],
        X_val=X[held_out], y_val=y[held_out], sample_weight_val=weight[held_out],
    )  # fmt: skip
    assert model.n_iter_ == expected.n_iter_
    assert_array_equal(model.predict(X), expected.predict(X))


@KINDS
def test_limits_of_depth_and_leaves_hold_together(kind):
    X, y = make_classification(random_state=0)
    model = kind(max_depth=2, max_leaf_nodes=3, n_estimators=1).fit(X, y)
    assert (model.get_depth(), model.get_n_leaves()) == (2, 3)


@KINDS
def test_a_constant_target_is_predicted(kind):
    X, y = make_classification(random_state=0)
    assert_allclose(kind(n_estimators=20).fit(X, np.ones_like(y)).predict(X), 1)


@KINDS
def test_rows_and_targets_of_other_lengths_are_refused(kind):
    X, y = np.arange(4.0)[:, np.newaxis], [0, 0, 1, 1]
    with pytest.raises(ValueError, match=re.escape("sample_weight must have one entry per row")):
        kind().fit(X, y, [0.1, 0.3, 0.1])
    with pytest.raises(ValueError, match="inconsistent"):
        kind().fit(X, y[1:])


# ---- scorers and more rounds ----------------------------------------------------


@pytest.mark.parametrize("scoring", [None, "loss"])
def test_labels_may_be_text_while_a_fit_stops_early(scoring):
    X = np.random.RandomState(42).randn(100, 10)
    y = np.array(["x"] * 50 + ["y"] * 50, dtype=object)
    model = LHBoostClassifier(scoring=scoring, early_stopping=True).fit(X, y)
    assert set(model.predict(X)) <= {"x", "y"}


def test_scorers_of_frames_raise_no_warning():
    pd = pytest.importorskip("pandas")
    X, y = make_regression(n_samples=50, random_state=0)
    frame = pd.DataFrame(X, columns=[f"col{i}" for i in range(X.shape[1])])
    model = LHBoostRegressor(scoring="neg_mean_absolute_error", early_stopping=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(frame, y)


@pytest.mark.parametrize("kind_of_seed", ["none", "int", "instance"])
def test_draws_of_a_warm_start_are_those_of_its_first_fit(kind_of_seed):
    X = np.random.RandomState(0).normal(size=(300, 4))

    def fit(seed):
        state = {"none": None, "int": seed, "instance": np.random.RandomState(seed)}[kind_of_seed]
        model = LHBoostRegressor(
            n_estimators=2, warm_start=True, early_stopping=True, random_state=state
        ).fit(X, X[:, 0])
        first = model._seed
        model.set_params(n_estimators=4).fit(X, X[:, 0])
        assert model._seed == first
        return first

    assert (fit(0) == fit(0)) == (kind_of_seed != "none")
