"""Counterfactuals of boosted models: found by a search, confirmed by the model."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer

from boosted import fit_boosted
from lhtree import LHBoostClassifier
from lhtree.explain import model_view, nearest_counterfactual
from lhtree.explain.counterfactuals import can_be_proven


def test_a_search_finds_rows_nearer_than_those_of_other_classes():
    X, y = load_breast_cancer(return_X_y=True)
    model = LHBoostClassifier(n_estimators=20, random_state=0).fit(X, y)
    std = model_view.view_model(model).column_std
    assert np.all((std > X.std(axis=0) / 2) & (std < X.std(axis=0) * 2))
    predicted = model.predict(X)
    for i in (0, 100, 300):
        result = nearest_counterfactual(model, X[i], start=X, n_trials=5000)
        assert result.found
        assert not result.is_minimal
        assert model.predict([result.x])[0] == result.prediction != result.original
        distance = np.linalg.norm((X - X[i]) / std, axis=1)[predicted != predicted[i]].min()
        assert result.distance < distance
        assert result.distance == pytest.approx(np.linalg.norm(result.change / std))


@pytest.mark.parametrize("name", ["two classes", "three classes", "five classes"])
def test_categories_and_missing_values_stay(name):
    model, X = fit_boosted(name)
    for i in (0, 2, 3):
        row = X.iloc[[i]]
        result = nearest_counterfactual(model, row, start=X, n_trials=3000)
        assert np.isnan(result.change[3])
        if not result.found:
            assert row.drop(columns="color").isna().all(axis=None)
            continue
        assert_array_equal(result.x.isna(), row.isna())
        assert result.x["color"].iloc[0] == row["color"].iloc[0]
        assert model.predict(result.x)[0] == result.prediction


def test_a_class_is_reached_within_limits():
    model, X = fit_boosted("three classes")
    row = X.iloc[[0]]
    wanted = next(label for label in (2, 0) if label != model.predict(row)[0])
    result = nearest_counterfactual(
        model, row, desired_class=wanted, features=["a", "d"], ranges={"a": (-1, 1)}, start=X
    )
    assert result.prediction == wanted
    assert -1 <= result.x["a"].iloc[0] <= 1
    assert_array_equal(result.x[["b", "c", "e"]], row[["b", "c", "e"]])


def test_nothing_is_proven_for_boosted_models():
    assert not can_be_proven(fit_boosted("two classes")[0])
    model, X = fit_boosted("one class")
    assert "only one class" in nearest_counterfactual(model, X.iloc[[0]]).message


def test_functions_of_splits_have_the_sides_of_rows():
    model, X = fit_boosted("two classes")
    view, ensemble = model_view.view_model(model), model.forest_
    split = np.flatnonzero(ensemble.left >= 0)
    path, _ = model.decision_path(X)
    passes = path.toarray() > 0
    root = np.repeat(ensemble.tree_start[:-1], np.diff(ensemble.tree_start))
    table = model.encode_rows(X)
    for i in range(0, 150, 7):
        slope, value = view.compute_functions(split, view.standardize(table[i : i + 1])[0])
        known = passes[i, split] & (np.abs(value) > 1e-4 * np.abs(slope).max(axis=1))
        assert known.any()
        goes_right = passes[i, (root + ensemble.left + 1)[split]]
        assert_array_equal((value > 0)[known], goes_right[known])
