"""The problem that callers state: features, ranges, integers; and what is refused."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import nearest_counterfactual
from lhtree.explain.counterfactuals.problem import state_problem


def test_only_the_named_features_change_within_their_ranges(wine):
    X, y = wine
    model = LHTClassifier().fit(X, y)
    features = ["alcohol", "proline", "hue"]
    free = nearest_counterfactual(model, X.iloc[0], features=features)
    assert list(free.x.columns) == list(X.columns)
    changed = free.x.columns[(free.x.iloc[0] != X.iloc[0]).to_numpy()]
    assert set(changed) <= set(features)
    low = float(free.x["proline"].iloc[0]) + 50
    limited = nearest_counterfactual(
        model, X.iloc[0], features=features, ranges={"proline": (low, None), "hue": (0.5, 1.5)}
    )
    assert limited.is_minimal
    assert limited.x["proline"].iloc[0] >= low - 1e-9
    assert limited.distance > free.distance
    assert model.predict(limited.x)[0] == limited.prediction


def test_integers_stay_within_limits_that_are_not_integers(wine):
    X, y = wine
    model = LHForestClassifier(n_estimators=3, random_state=0).fit(X, y)
    ranges = {"ash": (1.7, 3.3), "hue": (2, 4)}
    problem = state_problem(model, X.iloc[0], None, None, ranges, ["ash", "hue"])
    moves = np.linspace(-30, 30, 61)[:, np.newaxis] * np.ones(13)
    raw = problem.compute_raw(problem.make_feasible(moves))
    names = list(X.columns)
    assert set(raw[:, names.index("ash")]) == {2.0, 3.0}
    assert set(raw[:, names.index("hue")]) == {2.0, 3.0, 4.0}


@pytest.mark.parametrize(("arguments", "message"), [
    ({"desired_class": 7}, "7 is not a class of the model; its classes are 0, 1, 2"),
    ({"desired_class": 0}, "desired_class=0 is what the model predicts already"),
    ({"features": ["colour"]}, "features has 'colour', which is not a feature"),
    ({"features": "ash"}, "features must be a list"),
    ({"features": []}, "features must name at least one"),
    ({"features": [13]}, "features has 13, which is not a feature"),
    ({"features": [True]}, "features has True, which is not a feature"),
    ({"ranges": {"ash": 3}}, r"ranges\['ash'\] must be a pair"),
    ({"ranges": {"ash": (3, 2)}}, r"ranges\['ash'\] must not decrease"),
    ({"ranges": {"nothing": (0, 1)}}, "ranges has 'nothing'"),
    ({"integers": ["nothing"]}, "integers has 'nothing'"),
    ({"integers": "ash"}, "integers must be a list of names or positions, got 'ash'"),
    ({"integers": 2}, "integers must be a list of names or positions, got 2"),
    ({"integers": ["ash"], "ranges": {"ash": (2.2, 2.8)}}, r"ranges\['ash'\] must contain an int"),
    ({"max_states": -1}, "max_states must be an integer from 0"),
    ({"n_trials": 1.5}, "n_trials must be an integer from 0"),
])  # fmt: skip
def test_bad_input_gets_a_clear_message(arguments, message, wine):
    model = LHTClassifier().fit(*wine)
    with pytest.raises(ValueError, match=message):
        nearest_counterfactual(model, wine[0].iloc[0], **arguments)


def test_bad_rows_and_models_get_a_clear_message(wine):
    X, y = wine
    with pytest.raises(NotFittedError):
        nearest_counterfactual(LHTClassifier(), X.iloc[0])
    model = LHTClassifier().fit(X.to_numpy(), y)
    with pytest.raises(ValueError, match=r"x must be one row, got the shape \(2, 13\)"):
        nearest_counterfactual(model, X.to_numpy()[:2])
    with pytest.raises(ValueError, match="3 features"):
        nearest_counterfactual(model, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="inf"):
        nearest_counterfactual(model, [np.inf] * 13)
    with_gap = X.to_numpy()[0].copy()
    with_gap[2] = np.nan
    model.fit(np.where(np.arange(178)[:, None] % 9 == 0, np.nan, X), y)
    with pytest.raises(ValueError, match="features has x2, which is missing in x"):
        nearest_counterfactual(model, with_gap, features=[2])
