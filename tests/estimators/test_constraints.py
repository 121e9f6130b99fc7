"""Monotone and interaction constraints of boosted models."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

import lhtree
from lhtree import LHBoostClassifier, LHBoostRegressor

KINDS = pytest.mark.parametrize("kind", [LHBoostClassifier, LHBoostRegressor])
N_HYPERPLANES = pytest.mark.parametrize("n_hyperplanes", [0, 1, 3])
TRENDS = [1, -1, 0, 1]


def make(kind, **parameters):
    """Return a small model of so many rounds: no rows are held out unless a test says so."""
    rounds = {"n_estimators": 30, "learning_rate": 0.1, "early_stopping": False}
    return kind(**{**rounds, "random_state": 0, "max_leaf_nodes": 12, **parameters})


@pytest.fixture(scope="module")
def rows():
    """Return rows of four columns, gaps in the last, and waves around a rise and a fall."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1000, 4))
    up, down = X[:, 0], X[:, 1]
    y = 5 * up + np.sin(10 * np.pi * up) - 5 * down - np.cos(10 * np.pi * down)
    y = y + 4 * X[:, 2] * X[:, 3] + rng.normal(size=len(X)) / 10
    is_missing = rng.random(len(X)) < 0.2
    X[is_missing, 3] = np.nan
    return X, y - 6 * is_missing


def to_target(kind, y):
    """Return classes for a classifier, numbers for a regressor."""
    return (y > np.median(y)).astype(int) if kind is LHBoostClassifier else y


def predict(model, X):
    """Return what a model says in most detail."""
    return model.predict_proba(X)[:, 1] if hasattr(model, "classes_") else model.predict(X)


def list_rises(model, X, j, seed=0):
    """Return by how much predictions rise where column j rises, all others equal."""
    rng = np.random.default_rng(seed)
    X = X[rng.integers(0, len(X), 2000)]
    below, above = X.copy(), X.copy()
    below[:, j], above[:, j] = np.sort(rng.uniform(-0.5, 1.5, (2, len(X))), axis=0)
    return predict(model, above) - predict(model, below)


def assert_in_order(model, X, trends=TRENDS):
    """Demand that no prediction goes against a trend."""
    for j in np.flatnonzero(trends):
        assert (list_rises(model, X, j) * trends[j] >= 0).all()


def assert_same(first, second):
    """Demand the same trees."""
    for name, array in vars(first.forest_).items():
        if isinstance(array, np.ndarray):
            assert_array_equal(getattr(second.forest_, name), array, name)


@KINDS
@N_HYPERPLANES
def test_predictions_follow_the_trends_everywhere(kind, n_hyperplanes, rows, tmp_path):
    X, y = rows[0], to_target(kind, rows[1])
    free = make(kind, n_hyperplanes=n_hyperplanes).fit(X, y)
    assert all((list_rises(free, X, j) * TRENDS[j]).min() < -0.01 for j in (0, 1, 3))
    model = clone(free).set_params(monotonic_cst=TRENDS).fit(X, y)
    assert_in_order(model, X)
    assert model.score(X, y) > 0.85
    lhtree.save(model, tmp_path / "model.safetensors")
    loaded = lhtree.load(tmp_path / "model.safetensors")
    assert loaded.monotonic_cst == TRENDS
    assert_array_equal(predict(loaded, X), predict(model, X))
    assert_in_order(loaded, X)


@KINDS
def test_trends_hold_with_weights_drawn_rows_and_early_stopping(kind, rows):
    X, y = rows[0], to_target(kind, rows[1])
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(X))
    model = make(kind, monotonic_cst=TRENDS, subsample=0.5, early_stopping=True, learning_rate=0.5)
    assert_in_order(model.fit(X, y, sample_weight=weight), X)


@N_HYPERPLANES
def test_hyperplanes_serve_constrained_columns(n_hyperplanes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4))
    y = np.floor(X @ [2.0, -1.0, 1.0, 0.5])
    model = make(LHBoostRegressor, n_hyperplanes=n_hyperplanes, monotonic_cst=[1, -1, 1, 1])
    model.fit(X, y)
    assert (len(model.forest_.cut) > 20) == (n_hyperplanes > 0)
    assert_in_order(model, X, [1, -1, 1, 1])


def test_a_missing_value_has_no_place_among_the_others(rows):
    X, y = rows
    model = make(LHBoostRegressor, monotonic_cst=[0, 0, 0, 1]).fit(X, y)
    above, below = X[~np.isnan(X[:, 3])], X[~np.isnan(X[:, 3])].copy()
    below[:, 3] = np.nan
    assert np.mean(model.predict(above) - model.predict(below)) > 5
    model = make(LHBoostRegressor, monotonic_cst=[0, 0, 0, -1]).fit(X, y)
    assert np.mean(model.predict(above) - model.predict(below)) > 5


def test_trends_by_names_are_those_by_positions(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make(LHBoostRegressor, monotonic_cst={"b": -1, "a": 1, "d": 1}).fit(frame, y)
    for given in (TRENDS, tuple(TRENDS), np.array(TRENDS, dtype=np.int8)):
        assert_same(model, make(LHBoostRegressor, monotonic_cst=given).fit(frame, y))


@KINDS
def test_trends_of_zero_and_a_group_of_all_columns_change_nothing(kind, rows):
    X, y = rows[0], to_target(kind, rows[1])
    free = make(kind, n_hyperplanes=3).fit(X, y)
    for constraints in ({"monotonic_cst": [0] * 4}, {"interaction_cst": [{0, 1, 2, 3}]}):
        assert_same(free, make(kind, n_hyperplanes=3, **constraints).fit(X, y))


def test_trends_of_columns_without_a_value_are_left_out():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 6)) < 0.5, rng.normal(size=(300, 6)), 0.0)
    X[:, [0, 3]] = 0.0
    y = np.sin(3 * X[:, 1]) + X[:, 4] - X[:, 5]
    dense = make(LHBoostRegressor, monotonic_cst=[1, 1, -1, -1, 1, 1])
    groups = [{0, 1, 2}, {3}, {4, 5, 0}]
    first = clone(dense).set_params(interaction_cst=groups).fit(csr_array(X), y)
    kept = [1, 2, 4, 5]
    second = make(LHBoostRegressor, monotonic_cst=[1, -1, 1, 1], interaction_cst=[{0, 1}, {2, 3}])
    assert_array_equal(first.predict(csr_array(X)), second.fit(X[:, kept], y).predict(X[:, kept]))


# ---- interaction ----------------------------------------------------------------------


def list_columns_of_trees(model):
    """Return the columns of each tree."""
    trees = model.forest_
    n_planes = 0
    for first, last in zip(trees.tree_start[:-1], trees.tree_start[1:], strict=True):
        column, is_split = trees.column[first:last], trees.left[first:last] >= 0
        used = set(column[is_split & (column >= 0)].tolist())
        own = n_planes + int(np.count_nonzero(is_split & (column < 0)))
        used |= set(trees.feature[slice(*trees.term_start[[n_planes, own]])].tolist())
        n_planes = own
        yield used


def sum_scores(model, *rows):
    """Return raw scores as exact integers."""
    return model.forest_.sum_values(np.array(rows, dtype=np.float64))[:, 0]


@KINDS
def test_columns_that_do_not_meet_add_up(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 3))
    y = to_target(kind, X.sum(axis=1) + 5 * X[:, 0] * X[:, 1])
    for given, adds_up in (
        (None, False), ("pairwise", False), ([{0, 1}], False), ("no_interactions", True),
        ([{0}], True), ([(0, 2), [1]], True), ([{0, 2}, {1, 2}], True),
    ):  # fmt: skip
        model = make(kind, n_hyperplanes=3, interaction_cst=given).fit(X, y)
        a, b, c, d = sum_scores(model, [1, 1, 0], [1, -1, 0], [-1, 1, 0], [-1, -1, 0])
        assert (a - b == c - d) == adds_up, given


def test_trees_use_the_columns_of_one_group(rows):
    X, y = rows
    groups = [{0, 2}, {1, 2}]
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make(LHBoostRegressor, interaction_cst=groups, n_hyperplanes=3).fit(frame, y)
    used = list(list_columns_of_trees(model))
    assert len(model.forest_.cut) > 0
    assert {3} in used  # columns of no group form one more
    assert all(any(each <= group for group in (*groups, {3})) for each in map(set, used))
    by_names = make(LHBoostRegressor, interaction_cst=[["a", "c"], ["b", "c"]])
    assert_same(model, by_names.set_params(n_hyperplanes=3).fit(frame, y))


def test_a_model_grown_anew_has_the_groups_of_the_first(rows):
    groups = [{0, 2}, {1, 2}]
    model = make(LHBoostRegressor, interaction_cst=groups, early_stopping=True, refit=True)
    used = list(list_columns_of_trees(model.fit(*rows)))
    assert len(used) > 5
    assert all(any(each <= group for group in (*groups, {3})) for each in used)


@pytest.mark.parametrize("given", ["pairwise", [{0, 1}, frozenset({2, 3})], [("a", "b"), ["c"]]])
def test_groups_of_columns_survive_a_file(given, rows, tmp_path):
    frame = pd.DataFrame(rows[0], columns=list("abcd"))
    model = make(LHBoostRegressor, n_estimators=3, interaction_cst=given).fit(frame, rows[1])
    lhtree.save(model, tmp_path / "model.safetensors")
    loaded = lhtree.load(tmp_path / "model.safetensors")
    assert loaded.interaction_cst == given
    assert_same(model, loaded.fit(frame, rows[1]))


# ---- errors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"monotonic_cst": "rising"}, "must be None, a list of -1, 0 and 1 .* got 'rising'"),
        ({"monotonic_cst": 1}, "must be None, a list of -1, 0 and 1 .* got 1"),
        ({"monotonic_cst": [[1, 0, 0, 0]]}, "must be None, a list"),
        ({"monotonic_cst": [1, 0]}, "for each of the 4 columns of X, got 2; give 0"),
        ({"monotonic_cst": [1, 0, 2, 0]}, r"1 \(rising\), .* got 2 at position 2"),
        ({"monotonic_cst": [1, 0, 0.5, 0]}, "got 0.5 at position 2"),
        ({"monotonic_cst": [1, 0, np.nan, 0]}, "got nan at position 2"),
        ({"monotonic_cst": [1, 0, "1", 0]}, "got '1' at position 2"),
        ({"monotonic_cst": {"a": 1}}, "columns of X have no names; give a list"),
        ({"interaction_cst": "triples"}, "'no_interactions' or a list of sets.* got 'triples'"),
        ({"interaction_cst": 3}, "'no_interactions' or a list of sets .* got 3"),
        ({"interaction_cst": [0, 1]}, r"'no_interactions' or a list of sets .* got \[0, 1\]"),
        ({"interaction_cst": [{0, 4}]}, "has 4, which is not a column of X; give positions from"),
        ({"interaction_cst": [{-1}]}, "has -1, which is not a column of X"),
        ({"interaction_cst": [{"a"}]}, "has 'a', which is not a column of X"),
        ({"interaction_cst": (each for each in [{0}])}, "can be read only once, .* into a list"),
        ({"interaction_cst": [{0}, iter([1, 2])]}, "has <list_iterator .* only once, .* a list"),
        ({"interaction_cst": [{True}]}, "has True, which is not a column of X"),
    ],
)
def test_errors_name_the_constraint_its_value_and_the_remedy(parameters, message, rows):
    with pytest.raises(ValueError, match=f"^{next(iter(parameters))}.*{message}"):
        make(LHBoostRegressor, **parameters).fit(*rows)


def test_trends_need_columns_of_the_frame_that_are_numbers(rows):
    frame = pd.DataFrame(rows[0], columns=list("abcd"))
    with pytest.raises(ValueError, match=r"has the key 'e', .* its columns are \['a', 'b', 'c'"):
        make(LHBoostRegressor, monotonic_cst={"e": 1}).fit(frame, rows[1])
    with pytest.raises(ValueError, match="got 'up' for 'a'"):
        make(LHBoostRegressor, monotonic_cst={"a": "up"}).fit(frame, rows[1])
    frame["c"] = pd.Categorical(np.where(frame["c"] > 0.5, "yes", "no"))
    model = make(LHBoostRegressor, monotonic_cst={"c": 1})
    with pytest.raises(ValueError, match=r"has 1 for 'c', a column of categories, .* give 0"):
        model.fit(frame, rows[1])
    assert not hasattr(model, "forest_")
    model.set_params(monotonic_cst={"c": 0, "a": 1}).fit(frame, rows[1])


def test_trends_need_one_score_per_row(rows):
    X, y = rows[0], np.digitize(rows[1], [-2, 2])
    with pytest.raises(ValueError, match=r"monotonic_cst needs two classes, .* got 3 scores"):
        make(LHBoostClassifier, monotonic_cst=TRENDS).fit(X, y)
    make(LHBoostClassifier, monotonic_cst=[0] * 4, interaction_cst="pairwise").fit(X, y)
    make(LHBoostClassifier, monotonic_cst=TRENDS).fit(X, np.zeros(len(X)))


def test_pairs_of_very_many_columns_are_refused():
    X = np.zeros((3, 1500))
    with pytest.raises(ValueError, match="takes at most 1048576 pairs of columns, got 1124250 of"):
        make(LHBoostRegressor, interaction_cst="pairwise").fit(X, [1, 2, 3])
