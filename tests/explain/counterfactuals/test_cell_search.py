"""Proven counterfactuals: no point of a grid, and no random point, is nearer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine

from lhtree import LHTClassifier
from lhtree.explain import nearest_counterfactual


def make_two_columns(seed, n_classes=3):
    """Return two columns and overlapping classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 2)) * [1.0, 30.0]
    angle = np.arctan2(X[:, 1] / 30, X[:, 0]) + 0.5 * rng.normal(size=90)
    return X, np.floor((angle % (2 * np.pi)) / (2 * np.pi / n_classes)).astype(int)


def compute_distance_on_grid(model, x, desired_class=None, step=0.02, reach=3.0):
    """Return the distance of the nearest point of a fine grid that has another class."""
    axis = np.arange(-reach, reach + step, step)
    u = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    label = model.predict(x + u * model.forest_.column_std)
    if desired_class is None:
        is_reached = label != model.predict(x[np.newaxis])
    else:
        is_reached = label == desired_class
    return np.linalg.norm(u[is_reached], axis=1).min(initial=np.inf)


@pytest.mark.parametrize("settings", [{}, {"max_depth": 2}, {"max_depth": 0}, {"beta": 1.0}],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_no_point_of_a_fine_grid_is_nearer(n_classes, settings):
    X, y = make_two_columns(n_classes, n_classes)
    model = LHTClassifier(**settings).fit(X, y)
    for x in X[:8] + 0.01:
        result = nearest_counterfactual(model, x)
        on_grid = compute_distance_on_grid(model, x)
        if not result.found:
            assert on_grid == np.inf
            continue
        assert result.is_minimal
        assert result.distance <= on_grid + 1e-6
        # Regions thinner than the grid may hide between its points, so no bound from below;
        # random points within the distance must not change the class, either.
        rng = np.random.default_rng(0)
        u = rng.normal(size=(20_000, 2))
        u *= (rng.random(20_000) ** 0.5 / np.linalg.norm(u, axis=1))[:, np.newaxis]
        radius = max(result.distance - 1e-6, 0.0)  # training rows lie on hyperplanes
        near = x + u * radius * model.forest_.column_std
        assert (model.predict(near) == result.original).all()


@pytest.mark.parametrize("settings", [{}, {"criterion": "gini"}], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_leaves_in_which_the_votes_are_equal_belong_to_a_class(n_classes, settings):
    n_equal = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 4, (40, 2)).astype(float)  # many rows occur twice
        score = (X.sum(axis=1) + rng.integers(-1, 2, 40)) // (6 // n_classes)
        model = LHTClassifier(**settings).fit(X, np.clip(score, 0, n_classes - 1))
        n_equal += np.sum((model.forest_.left < 0) & (model.forest_.value == 0.5))
        for x in np.unique(X, axis=0):
            result = nearest_counterfactual(model, x, n_trials=1000)
            if result.is_minimal:
                on_grid = compute_distance_on_grid(model, x, step=0.05)
                assert result.distance <= on_grid + 1e-6
    assert n_equal > 0


def test_a_leaf_of_value_one_half_is_reached():
    X = [[0.0], [0.0], [10.0], [11.0], [12.0], [-100.0], [-101.0], [-102.0]]
    model = LHTClassifier(standardize=False, criterion="gini").fit(X, [0, 1, 1, 1, 1, 0, 0, 0])
    assert_array_equal(model.predict([[10.0], [4.0]]), [1, 0])
    result = nearest_counterfactual(model, [10.0], ranges={0: (-40, None)})
    assert result.found
    assert result.is_minimal
    assert_allclose(result.x, [5.0], atol=1e-6)


def test_the_nearest_point_of_each_class_is_as_on_the_grid():
    X, y = make_two_columns(7, 4)
    model = LHTClassifier().fit(X, y)
    distances = []
    for label in range(4):
        if label == model.predict(X[:1])[0]:
            continue
        result = nearest_counterfactual(model, X[0], desired_class=label)
        assert result.prediction == model.predict(result.x[np.newaxis])[0] == label
        on_grid = compute_distance_on_grid(model, X[0], label, step=0.004, reach=1.6)
        assert on_grid - 0.02 <= result.distance <= on_grid + 1e-6
        distances.append(result.distance)
    assert min(distances) == pytest.approx(nearest_counterfactual(model, X[0]).distance)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_results_are_confirmed_and_no_random_point_is_nearer(load):
    X, y = load(return_X_y=True)
    model = LHTClassifier().fit(X, y)
    rng = np.random.default_rng(1)
    for i in range(0, len(X), len(X) // 8):
        result = nearest_counterfactual(model, X[i])
        assert result.found
        assert result.is_minimal
        assert model.predict([result.x])[0] == result.prediction != result.original
        assert_allclose(result.x, X[i] + result.change)
        length = np.linalg.norm(result.change / model.forest_.column_std)
        assert_allclose(result.distance, length)
        u = rng.normal(size=(5000, X.shape[1]))
        u *= (result.distance - 1e-6) / np.linalg.norm(u, axis=1, keepdims=True)
        assert (model.predict(X[i] + u * model.forest_.column_std) == result.original).all()


def test_the_result_for_a_known_hyperplane_is_the_foot_of_its_perpendicular():
    # Positive rows at 3 and 4, negative ones at 1 and 2: the threshold is the number after
    # 2, and x0 alone matters.
    X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])
    model = LHTClassifier(standardize=False).fit(X, [0, 0, 1, 1])
    result = nearest_counterfactual(model, [4.0, 7.0])
    assert result.is_minimal
    assert_allclose(result.x, [2.0, 7.0], atol=1e-6)
    assert_array_equal(result.x[1], 7.0)
    assert "x0" in str(result)


def test_the_result_for_one_feature_is_that_of_the_grid():
    X, y = make_two_columns(3)
    model = LHTClassifier().fit(X, y)
    for x in X[:5]:
        result = nearest_counterfactual(model, x, features=[1])
        u = np.arange(-8, 8, 1e-4)
        line = np.repeat(x[np.newaxis], len(u), axis=0)
        line[:, 1] += u * model.forest_.column_std[1]
        nearest = np.abs(u[model.predict(line) != result.original]).min(initial=np.inf)
        if result.found:
            assert abs(result.distance - nearest) < 2e-4
        else:
            assert nearest == np.inf
            assert result.is_minimal


def test_integers_are_the_best_of_all_integers():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 12, size=(150, 2)).astype(float)
    y = (X[:, 0] * 0.7 + X[:, 1] + rng.normal(size=150) * 2 > 10).astype(int) + (X[:, 0] > 9)
    model = LHTClassifier(max_depth=4).fit(X, y)
    grid = np.stack(np.meshgrid(np.arange(-15, 30), np.arange(-15, 30)), -1).reshape(-1, 2)
    label = model.predict(grid.astype(float))
    for x in X[:8]:
        result = nearest_counterfactual(model, x, integers=[0, 1])
        length = np.linalg.norm((grid - x) / model.forest_.column_std, axis=1)
        assert result.is_minimal
        assert_array_equal(result.x, np.round(result.x))
        assert_allclose(result.distance, length[label != result.original].min())


def test_a_proof_that_is_cut_short_is_not_a_proof(wine):
    X, y = wine
    model = LHTClassifier().fit(X, y)
    result = nearest_counterfactual(model, X.iloc[0], max_states=1)
    assert result.found
    assert not result.is_minimal
    assert result.distance >= nearest_counterfactual(model, X.iloc[0]).distance


def test_the_upper_limit_of_a_range_holds():
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    model = LHTClassifier(standardize=False).fit(X, [0, 0, 1, 1])
    inside = nearest_counterfactual(model, [1.0], ranges={0: (None, 2.5)})
    assert inside.is_minimal
    assert_allclose(inside.x, [2.0], atol=1e-6)
    outside = nearest_counterfactual(model, [1.0], ranges={0: (None, 1.5)})
    assert (outside.found, outside.is_minimal) == (False, True)


def test_an_integer_on_the_boundary_of_another_class_leads_to_the_next():
    # Class 0 lies below 4, which itself belongs to class 1.
    model = LHTClassifier(standardize=False).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 0, 1])
    assert model.forest_.threshold[0] == 4
    result = nearest_counterfactual(model, [6.0], integers=[0])
    assert result.is_minimal
    assert_array_equal(result.x, [3.0])
