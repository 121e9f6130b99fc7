"""Counterfactuals that a local search finds, without a proof."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer

from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import nearest_counterfactual
from lhtree.explain.model_view import view_model


@pytest.mark.parametrize("preset", ["accurate", "paper"])
def test_forests_get_the_best_that_a_search_finds(preset):
    X, y = load_breast_cancer(return_X_y=True)
    model = LHForestClassifier(n_estimators=10, preset=preset, random_state=0).fit(X, y)
    for i in (0, 100, 300):
        result = nearest_counterfactual(model, X[i], start=X)
        assert result.found
        assert not result.is_minimal
        assert "found" in result.message
        assert model.predict([result.x])[0] == result.prediction != result.original
        Z = (X - X[i]) / view_model(model).column_std
        others = model.predict(X) != result.original
        assert result.distance < np.linalg.norm(Z[others], axis=1).min()
    again = nearest_counterfactual(model, X[i], start=X)
    assert_array_equal(again.x, result.x)


def test_the_search_comes_near_to_the_proof(wine):
    X, y = wine
    model = LHTClassifier().fit(X, y)
    ratio = []
    for i in range(0, 178, 40):
        proven = nearest_counterfactual(model, X.iloc[i])
        found = nearest_counterfactual(model, X.iloc[i], max_states=0)
        assert proven.is_minimal
        assert not found.is_minimal
        assert found.distance >= proven.distance - 1e-6
        ratio.append(found.distance / proven.distance)
    assert np.median(ratio) < 1.02
    assert max(ratio) < 1.2


def test_a_search_keeps_limits_and_integers(wine):
    X, y = wine
    model = LHForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    result = nearest_counterfactual(
        model, X.iloc[0], integers=["proline"], ranges={"alcohol": (14, 14.5)}, start=X
    )
    assert result.found
    assert result.x["proline"].item() == round(result.x["proline"].item())
    assert 14 <= result.x["alcohol"].item() <= 14.5


def test_margin_votes_are_searched_without_proof(wine):
    X, y = wine
    model = LHForestClassifier(n_estimators=1, max_samples=1.0, voting="margin").fit(X, y)
    result = nearest_counterfactual(model, X.iloc[0])
    assert result.found
    assert not result.is_minimal
