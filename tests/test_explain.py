"""Explanations: what the splits are, and what each feature adds to a vote."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine

from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import explain_rows, split_table, split_view


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


def test_proline_leads_the_first_split_of_class_0(wine):
    table = split_table(LHTClassifier().fit(*wine))
    first = table[(table["target"] == 0) & (table["node"] == 0)]
    assert first["feature_1"].item() == "proline"
    assert first["weight_1"].item() == 1.0


def test_contributions_lead_from_base_to_vote(wine):
    X, y = wine
    for model in (LHTClassifier(), LHForestClassifier(n_estimators=3, random_state=0)):
        explanation = explain_rows(model.fit(X, y), X[::5])
        total = explanation.base + explanation.contribution.sum(axis=-1)
        assert_allclose(total, explanation.vote, rtol=0, atol=1e-9)


def test_a_split_view_shows_the_training_rows_of_the_split(wine):
    X, y = wine
    model = LHTClassifier().fit(X, y)
    view = split_view(model, 0, 0, X, y)
    target, rest = view.projection[view.is_target], view.projection[~view.is_target]
    assert_allclose(view.extremes, [target.min(), target.max(), rest.min(), rest.max()], rtol=0)
    assert np.array_equal(view.is_right, view.projection >= view.threshold)
