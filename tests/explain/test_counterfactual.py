"""Counterfactuals: confirmed by the model, and not to be beaten by brute force."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_matrix, csr_array
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError

from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import nearest_counterfactual
from lhtree.explain.polytope import HalfSpace, find_nearest
from lhtree.explain.question import ask


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


def make_plane(seed, n_classes=3):
    """Return two columns and overlapping classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 2)) * [1.0, 30.0]
    angle = np.arctan2(X[:, 1] / 30, X[:, 0]) + 0.5 * rng.normal(size=90)
    return X, np.floor((angle % (2 * np.pi)) / (2 * np.pi / n_classes)).astype(int)


def find_nearest_on_grid(model, x, target=None, step=0.02, reach=3.0):
    """Return the distance of the nearest point of a fine grid that has another class."""
    axis = np.arange(-reach, reach + step, step)
    u = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    label = model.predict(x + u * model.forest_.column_deviation)
    hit = label != model.predict(x[np.newaxis]) if target is None else label == target
    return np.linalg.norm(u[hit], axis=1).min(initial=np.inf)


@pytest.mark.parametrize("settings", [{}, {"max_depth": 2}, {"max_depth": 0}, {"beta": 1.0}],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_no_point_of_a_fine_grid_is_nearer(n_classes, settings):
    X, y = make_plane(n_classes, n_classes)
    model = LHTClassifier(**settings).fit(X, y)
    for x in X[:8] + 0.01:
        answer = nearest_counterfactual(model, x)
        on_grid = find_nearest_on_grid(model, x)
        if not answer.found:
            assert on_grid == np.inf
            continue
        assert answer.is_minimal
        assert answer.distance <= on_grid + 1e-6
        # Pieces thinner than the grid may hide between its points, so no bound from below;
        # random points within the distance must not change the class, either.
        rng = np.random.default_rng(0)
        u = rng.normal(size=(20_000, 2))
        u *= (rng.random(20_000) ** 0.5 / np.linalg.norm(u, axis=1))[:, np.newaxis]
        radius = max(answer.distance - 1e-6, 0.0)  # rows of training lie on planes
        near = x + u * radius * model.forest_.column_deviation
        assert (model.predict(near) == answer.original).all()


@pytest.mark.parametrize("settings", [{}, {"threshold": "gini"}], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_leaves_in_which_the_votes_are_equal_belong_to_a_class(n_classes, settings):
    n_equal = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 4, (40, 2)).astype(float)  # many rows are there twice
        score = (X.sum(axis=1) + rng.integers(-1, 2, 40)) // (6 // n_classes)
        model = LHTClassifier(**settings).fit(X, np.clip(score, 0, n_classes - 1))
        n_equal += np.sum((model.forest_.left < 0) & (model.forest_.share == 0.5))
        for x in np.unique(X, axis=0):
            answer = nearest_counterfactual(model, x, n_trials=1000)
            if answer.is_minimal:
                on_grid = find_nearest_on_grid(model, x, step=0.05)
                assert answer.distance <= on_grid + 1e-6
    assert n_equal > 0


def test_a_leaf_of_equal_shares_is_reached():
    X = [[0.0], [0.0], [10.0], [11.0], [12.0], [-100.0], [-101.0], [-102.0]]
    model = LHTClassifier(standardize=False, threshold="gini").fit(X, [0, 1, 1, 1, 1, 0, 0, 0])
    assert_array_equal(model.predict([[10.0], [4.0]]), [1, 0])
    answer = nearest_counterfactual(model, [10.0], ranges={0: (-40, None)})
    assert answer.found
    assert answer.is_minimal
    assert_allclose(answer.x, [5.0], atol=1e-6)


def test_the_nearest_point_of_each_class_is_as_on_the_grid():
    X, y = make_plane(7, 4)
    model = LHTClassifier().fit(X, y)
    distances = []
    for target in range(4):
        if target == model.predict(X[:1])[0]:
            continue
        answer = nearest_counterfactual(model, X[0], target=target)
        assert answer.prediction == model.predict(answer.x[np.newaxis])[0] == target
        on_grid = find_nearest_on_grid(model, X[0], target, step=0.004, reach=1.6)
        assert on_grid - 0.02 <= answer.distance <= on_grid + 1e-6
        distances.append(answer.distance)
    assert min(distances) == pytest.approx(nearest_counterfactual(model, X[0]).distance)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_answers_are_confirmed_and_no_random_point_is_nearer(load):
    X, y = load(return_X_y=True)
    model = LHTClassifier().fit(X, y)
    rng = np.random.default_rng(1)
    for i in range(0, len(X), len(X) // 8):
        answer = nearest_counterfactual(model, X[i])
        assert answer.found
        assert answer.is_minimal
        assert model.predict([answer.x])[0] == answer.prediction != answer.original
        assert_allclose(answer.x, X[i] + answer.change)
        length = np.linalg.norm(answer.change / model.forest_.column_deviation)
        assert_allclose(answer.distance, length)
        u = rng.normal(size=(5000, X.shape[1]))
        u *= (answer.distance - 1e-6) / np.linalg.norm(u, axis=1, keepdims=True)
        assert (model.predict(X[i] + u * model.forest_.column_deviation) == answer.original).all()


def test_the_answer_for_a_known_plane_is_its_foot():
    # Targets at 3 and 4, rest at 1 and 2: the plane is next(2), and x0 alone matters.
    X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])
    model = LHTClassifier(standardize=False).fit(X, [0, 0, 1, 1])
    answer = nearest_counterfactual(model, [4.0, 7.0])
    assert answer.is_minimal
    assert_allclose(answer.x, [2.0, 7.0], atol=1e-6)
    assert_array_equal(answer.x[1], 7.0)
    assert "x0" in str(answer)


def test_only_given_features_change_within_given_ranges(wine):
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


def test_the_limited_answer_is_that_of_the_grid():
    X, y = make_plane(3)
    model = LHTClassifier().fit(X, y)
    for x in X[:5]:
        answer = nearest_counterfactual(model, x, features=[1])
        u = np.arange(-8, 8, 1e-4)
        line = np.repeat(x[np.newaxis], len(u), axis=0)
        line[:, 1] += u * model.forest_.column_deviation[1]
        nearest = np.abs(u[model.predict(line) != answer.original]).min(initial=np.inf)
        if answer.found:
            assert abs(answer.distance - nearest) < 2e-4
        else:
            assert nearest == np.inf
            assert answer.is_minimal


def test_integers_are_the_best_of_all_integers():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 12, size=(150, 2)).astype(float)
    y = (X[:, 0] * 0.7 + X[:, 1] + rng.normal(size=150) * 2 > 10).astype(int) + (X[:, 0] > 9)
    model = LHTClassifier(max_depth=4).fit(X, y)
    grid = np.stack(np.meshgrid(np.arange(-15, 30), np.arange(-15, 30)), -1).reshape(-1, 2)
    label = model.predict(grid.astype(float))
    for x in X[:8]:
        answer = nearest_counterfactual(model, x, integers=[0, 1])
        length = np.linalg.norm((grid - x) / model.forest_.column_deviation, axis=1)
        assert answer.is_minimal
        assert_array_equal(answer.x, np.round(answer.x))
        assert_allclose(answer.distance, length[label != answer.original].min())


def test_no_answer_is_a_clear_answer(wine):
    X, y = wine
    model = LHTClassifier().fit(X, y)
    none = nearest_counterfactual(model, X.iloc[0], features=["ash"], ranges={"ash": (2.4, 2.5)})
    assert not none.found
    assert none.is_minimal
    assert none.x is None
    assert none.distance == np.inf
    assert none.message == "No change of class was found. There is none."
    one = nearest_counterfactual(LHTClassifier().fit(X, y * 0), X.iloc[0])
    assert (one.found, one.message) == (False, "The model knows one class only. There is none.")
    leaf = nearest_counterfactual(LHForestClassifier(max_depth=0).fit(X, y), X.iloc[0], n_trials=9)
    assert "may help" in leaf.message or leaf.found


def test_missing_values_stay_missing():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    X[rng.random(X.shape) < 0.2] = np.nan
    model = LHTClassifier().fit(X, y)
    x = X[np.flatnonzero(np.isnan(X).sum(axis=1) == 2)[0]]
    answer = nearest_counterfactual(model, x)
    assert answer.is_minimal
    assert_array_equal(np.isnan(answer.x), np.isnan(x))
    assert model.predict([answer.x])[0] == answer.prediction
    empty = nearest_counterfactual(model, np.full(4, np.nan))
    assert empty.message == "The row has no number that could change. There is none."


def test_forests_get_the_best_that_a_search_finds():
    X, y = load_breast_cancer(return_X_y=True)
    model = LHForestClassifier(n_estimators=10, random_state=0).fit(X, y)
    for i in (0, 100, 300):
        answer = nearest_counterfactual(model, X[i], start=X)
        assert answer.found
        assert not answer.is_minimal
        assert "found" in answer.message
        assert model.predict([answer.x])[0] == answer.prediction != answer.original
        Z = (X - X[i]) / model.forest_.column_deviation
        others = model.predict(X) != answer.original
        assert answer.distance < np.linalg.norm(Z[others], axis=1).min()
    again = nearest_counterfactual(model, X[i], start=X)
    assert_array_equal(again.x, answer.x)


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
    answer = nearest_counterfactual(
        model, X.iloc[0], integers=["proline"], ranges={"alcohol": (14, 14.5)}, start=X
    )
    assert answer.found
    assert answer.x["proline"].item() == round(answer.x["proline"].item())
    assert 14 <= answer.x["alcohol"].item() <= 14.5


def test_integers_within_broken_limits_stay_inside(wine):
    X, y = wine
    model = LHForestClassifier(n_estimators=3, random_state=0).fit(X, y)
    ranges = {"ash": (1.7, 3.3), "hue": (2, 4)}
    question = ask(model, X.iloc[0], None, None, ranges, ["ash", "hue"])
    moves = np.linspace(-30, 30, 61)[:, np.newaxis] * np.ones(13)
    raw = question.find_raw(question.allow(moves))
    names = list(X.columns)
    assert set(raw[:, names.index("ash")]) == {2.0, 3.0}
    assert set(raw[:, names.index("hue")]) == {2.0, 3.0, 4.0}


def test_margin_votes_are_searched_without_proof(wine):
    X, y = wine
    model = LHForestClassifier(n_estimators=1, max_samples=1.0, voting="margin").fit(X, y)
    answer = nearest_counterfactual(model, X.iloc[0])
    assert answer.found
    assert not answer.is_minimal


def test_a_proof_that_is_cut_short_is_none(wine):
    X, y = wine
    model = LHTClassifier().fit(X, y)
    answer = nearest_counterfactual(model, X.iloc[0], max_states=1)
    assert answer.found
    assert not answer.is_minimal
    assert answer.distance >= nearest_counterfactual(model, X.iloc[0]).distance


def test_rows_come_in_many_forms(wine):
    X, y = wine
    model = LHTClassifier().fit(X, y)
    by_series = nearest_counterfactual(model, X.iloc[5])
    for row in (X.iloc[[5]], X.iloc[5].to_numpy(), X.iloc[5].tolist(), X.iloc[[5]].to_numpy()):
        answer = nearest_counterfactual(model, row)
        assert answer.distance == by_series.distance
    plain = LHTClassifier().fit(X.to_numpy(), y)
    assert nearest_counterfactual(plain, X.iloc[5].to_numpy()).x.shape == (13,)
    before = X.iloc[[5]].copy()
    assert_array_equal(before, X.iloc[[5]])


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("form", [list, np.array, np.atleast_2d, csr_array, csc_matrix])
def test_rows_without_names_are_answered_by_arrays(form, is_named, wine):
    X, y = wine
    values = X.iloc[5]
    row = form([values]) if form in (csr_array, csc_matrix) else form(values)
    answer = nearest_counterfactual(LHTClassifier().fit(X if is_named else X.to_numpy(), y), row)
    assert answer.found
    assert isinstance(answer.x, np.ndarray)
    assert answer.x.dtype == np.float64
    assert_allclose(answer.x, values + answer.change)


def test_a_row_of_polars_comes_back_as_one_without_pandas(wine, monkeypatch):
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({name: wine[0][name].to_numpy() for name in wine[0]})
    model = LHTClassifier().fit(X, wine[1].to_numpy())
    monkeypatch.setitem(sys.modules, "pandas", None)
    answer = nearest_counterfactual(model, X[5])
    assert isinstance(answer.x, pl.DataFrame)
    assert answer.x.columns == X.columns
    assert model.predict(answer.x)[0] == answer.prediction
    assert_allclose(answer.x.to_numpy()[0], X[5].to_numpy()[0] + answer.change)
    by_array = nearest_counterfactual(model, X[5].to_numpy())
    assert isinstance(by_array.x, np.ndarray)
    assert_array_equal(by_array.x, answer.x.to_numpy()[0])


@pytest.mark.parametrize("is_named", [True, False])
def test_numbers_beside_text_stay_numbers(is_named, wine):
    X = wine[0][["alcohol", "proline"]].assign(colour=np.where(wine[0]["hue"] > 1, "a", "b"))
    table = X if is_named else X.to_numpy(dtype=object)
    model = LHTClassifier(categorical_features=[2]).fit(table, wine[1])
    row = X.iloc[5].tolist()
    answer = nearest_counterfactual(model, row, target=1)
    assert answer.distance == nearest_counterfactual(model, table[5:6], target=1).distance
    assert answer.x[2] == row[2]
    assert_allclose((answer.x[:2] - np.array(row[:2])).astype(float), answer.change[:2])


def test_the_nearest_point_of_a_corner_and_of_nothing():
    corner = [HalfSpace(np.array([1.0, 0.0]), 3.0), HalfSpace(np.array([0.0, 1.0]), 4.0)]
    assert_allclose(find_nearest(corner), [3, 4])
    assert_allclose(find_nearest(corner, margin=0.5), [3.5, 4.5])
    closed = [space._replace(is_open=False) for space in corner]
    assert_allclose(find_nearest(closed, margin=0.5), [3, 4])
    assert find_nearest([*corner, HalfSpace(np.array([-1.0, 0.0]), -2.0)]) is None


@pytest.mark.parametrize(("arguments", "message"), [
    ({"target": 7}, "7 is no class of the model; its classes are 0, 1, 2"),
    ({"target": 0}, "target=0 is what the model predicts already"),
    ({"features": ["colour"]}, "features has 'colour', which is no feature"),
    ({"features": "ash"}, "features must be a list"),
    ({"features": []}, "features must name at least one"),
    ({"features": [13]}, "features has 13, which is no feature"),
    ({"features": [True]}, "features has True, which is no feature"),
    ({"ranges": {"ash": 3}}, r"ranges\['ash'\] must be a pair"),
    ({"ranges": {"ash": (3, 2)}}, r"ranges\['ash'\] must rise"),
    ({"ranges": {"nothing": (0, 1)}}, "ranges has 'nothing'"),
    ({"integers": ["nothing"]}, "integers has 'nothing'"),
    ({"integers": "ash"}, "integers must be a list of names or positions, got 'ash'"),
    ({"integers": 2}, "integers must be a list of names or positions, got 2"),
    ({"integers": ["ash"], "ranges": {"ash": (2.2, 2.8)}}, r"ranges\['ash'\] must hold an int"),
    ({"max_states": -1}, "max_states must be an integer from 0"),
    ({"n_trials": 1.5}, "n_trials must be an integer from 0"),
])  # fmt: skip
def test_bad_input_gets_a_sentence(arguments, message, wine):
    model = LHTClassifier().fit(*wine)
    with pytest.raises(ValueError, match=message):
        nearest_counterfactual(model, wine[0].iloc[0], **arguments)


def test_bad_rows_and_models_get_a_sentence(wine):
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
    with pytest.raises(ValueError, match=r"features has x2, which x does not have \(missing\)"):
        nearest_counterfactual(model, with_gap, features=[2])
