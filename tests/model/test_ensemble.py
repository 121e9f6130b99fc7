"""Boosted trees as arrays: packed without loss, checked, and shown in the units of the data."""

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.model import ensemble_packing
from lhtree.model.ensemble import Ensemble
from lhtree.model.grid_columns import GridColumns

ROUNDS = {"early_stopping": False, "categorical_features": [3], "random_state": 0}


def make_rows(n=400, *, seed=0, n_categories=9):
    """Return rows of three columns of numbers, one with gaps, and a column of categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1, 1e-3, 1e6, 1]
    X[rng.random(n) < 0.2, 1] = np.nan
    X[:, 3] = rng.integers(0, n_categories, n)
    y = X[:, 0] + 1e3 * np.nan_to_num(X[:, 1]) + 1e-6 * X[:, 2] + (X[:, 3] % 3)
    return X, y + rng.normal(size=n) / 4


@pytest.fixture(scope="module")
def fitted():
    """Return a model with splits of all kinds, and rows."""
    X, y = make_rows()
    settings = ROUNDS | {"n_estimators": 12, "max_leaf_nodes": 15, "l2_regularization": 0.3}
    return LHBoostRegressor(**settings).fit(X, y), X


@pytest.fixture(scope="module")
def classifier():
    """Return a model of three classes, and rows."""
    X, y = make_rows()
    y = np.digitize(y, [-1, 1])
    return LHBoostClassifier(**ROUNDS, n_estimators=6).fit(X, y), X


@pytest.fixture
def ensemble(fitted):
    return fitted[0].forest_


def assert_same(copy, ensemble):
    """Demand equal bits in arrays that cannot be written."""
    assert (copy.power, copy.origin) == (ensemble.power, ensemble.origin)
    for own, other in ((ensemble, copy), (ensemble.columns, copy.columns)):
        for field in fields(own):
            array = getattr(own, field.name)
            if isinstance(array, np.ndarray):
                found = getattr(other, field.name)
                assert (found.dtype, found.shape) == (array.dtype, array.shape), field.name
                assert found.tobytes() == array.tobytes(), field.name
                assert not found.flags.writeable


def to_kinds(ensemble):
    """Return how many splits are by numbers, by categories and by hyperplanes."""
    return len(ensemble.threshold), len(ensemble.codes), len(ensemble.cut)


def test_the_model_of_these_tests_has_splits_of_all_kinds(ensemble):
    assert min(to_kinds(ensemble)) > 5
    assert ensemble.missing_left.any()
    assert np.isin(ensemble.columns.has_gaps, [0, 1]).all()
    assert ensemble.columns.has_gaps[1] == 1
    assert 1 in ensemble.feature


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    n_categories=st.sampled_from([2, 6, 7, 8, 14, 15, 62, 63, 64, 254, 255]),
    n_hyperplanes=st.sampled_from([0, 3]),
    n_classes=st.sampled_from([0, 2, 4]),
    is_weighted=st.booleans(),
)
def test_packed_trees_are_restored_bit_for_bit(
    seed, n_categories, n_hyperplanes, n_classes, is_weighted
):
    X, y = make_rows(seed=seed, n_categories=n_categories)
    weight = np.random.default_rng(seed).integers(1, 5, len(X)) if is_weighted else None
    model = (LHBoostClassifier if n_classes else LHBoostRegressor)(n_estimators=4, n_jobs=1)
    model.set_params(n_hyperplanes=n_hyperplanes, categorical_features=[3])
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model.fit(X, y, weight)
    assert model.forest_.n_outputs == max(1, n_classes if n_classes > 2 else 0)
    packed = ensemble_packing.pack(model.forest_)
    assert set(packed) == set(ensemble_packing.DTYPES)
    copy = Ensemble.from_packed(packed, model.forest_.power, model.forest_.origin)
    assert_same(copy, model.forest_)


@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_blocks_of_rows_end_in_the_leaves_of_single_rows(fitted, classifier, dtype, has_gaps):
    X = make_rows(1500, seed=5, n_categories=14)[0].astype(dtype)  # some categories are unknown
    X[:, 1] = np.nan_to_num(X[:, 1])
    if has_gaps:
        X[np.random.default_rng(6).random(X.shape) < 0.1] = np.nan
    for model, _ in (fitted, classifier):
        forest = model.forest_
        single = np.concatenate([forest.apply(X[i : i + 1]) for i in range(len(X))])
        scores = np.concatenate([forest.sum_values(X[i : i + 1]) for i in range(len(X))])
        for n in (16, 17, 100, 257, 1025, 1500):
            assert_array_equal(forest.apply(X[:n], n_threads=2), single[:n])
            assert_array_equal(forest.sum_values(X[:n]), scores[:n])


def test_an_ensemble_without_trees_survives():
    X, _ = make_rows()
    ensemble = LHBoostClassifier().fit(X, np.zeros(len(X))).forest_
    assert len(ensemble) == 0
    assert_same(pickle.loads(pickle.dumps(ensemble)), ensemble)


def test_zeros_of_both_signs_stay_apart(ensemble):
    threshold = ensemble.threshold.copy()
    threshold[:3] = [0.0, -0.0, 0.0]
    signed = replace(ensemble, threshold=threshold)
    assert_same(pickle.loads(pickle.dumps(signed)), signed)


def test_a_pickle_is_small_and_the_same(fitted):
    model, X = fitted
    copy = pickle.loads(pickle.dumps(model))
    assert_same(copy.forest_, model.forest_)
    assert copy.predict(X).tobytes() == model.predict(X).tobytes()
    assert_array_equal(copy.apply(X), model.apply(X))
    n_bytes = sum(
        array.nbytes for array in vars(model.forest_).values() if hasattr(array, "nbytes")
    )
    assert len(pickle.dumps(model.forest_)) < 0.4 * n_bytes


def test_a_packed_fill_is_kept_only_where_the_column_has_gaps(ensemble):
    packed = ensemble_packing.pack(ensemble)
    assert len(packed["ensemble.fill"]) == np.count_nonzero(ensemble.feature == 1)
    assert len(packed["ensemble.fill"]) < len(ensemble.feature)


def change(array, value, position=0):
    """Return a changed copy of an array."""
    changed = array.copy()
    changed[position] = value
    return changed


TREES = [
    ("left", 0, "breadth-first|numbered"),
    ("left", -7, "every node of a tree must have a parent|breadth-first"),
    ("column", 99, "unknown column"),
    ("missing_left", 2, "missing_left is not a truth value|missing_left"),
    ("weight", 0, "a node's rows have no weight"),
    ("weight", 10**9, "a split does not have the weight of its children"),
    ("threshold", np.nan, "a threshold is not a number or \\+inf"),
    ("threshold", -np.inf, "a threshold is not a number or \\+inf"),
    ("term_start", 1, "term_start must rise to the last term"),
    ("feature", -1, "a hyperplane has an unknown column"),
    ("feature", 99, "a hyperplane has an unknown column"),
    ("feature", 3, "a hyperplane has a column of categories"),
    ("coefficient", 0, "a term has no weight"),
    ("fill", 2**31 - 1, "the fill of a term is out of the range of its column"),
    ("importance", np.nan, "an importance is negative or not finite"),
    ("importance", -1, "an importance is negative or not finite"),
    ("base", 2**60, "base is out of range"),
]


@pytest.mark.parametrize(("name", "value", "words"), TREES)
def test_trees_that_no_fit_makes_are_refused(name, value, words, ensemble):
    array = change(getattr(ensemble, name), value)
    with pytest.raises(ValueError, match=words):
        replace(ensemble, **{name: array})


COLUMNS = [
    ("n_codes", -1, "a column must have at most 255 bins"),
    ("n_codes", 256, "a column must have at most 255 bins"),
    ("power", 1200, "the power of a grid is out of range"),
    ("origin", np.nan, "the origin of a column is not an integer"),
    ("origin", np.inf, "the origin of a column is not an integer"),
    ("origin", 0.5, "the origin of a column is not an integer"),
    ("low", 2**31 - 1, "low and high of a column are exchanged"),
    ("low", -(2**31), "the low of a column is that of a missing value"),
    ("fill", 2**31 - 1, "the fill of a column is out of its range"),
    ("has_gaps", 7, "has_gaps of a column is neither 0 nor 1"),
]


@pytest.mark.parametrize(("name", "value", "words"), COLUMNS)
def test_columns_that_no_fit_makes_are_refused(name, value, words, ensemble):
    array = change(getattr(ensemble.columns, name), value)
    with pytest.raises(ValueError, match=words):
        replace(ensemble, columns=replace(ensemble.columns, **{name: array}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"power": 1200}, "power is not an integer in range"),
        ({"power": 3.0}, "power is not an integer in range"),
        ({"origin": 0.5}, "origin is not an integer"),
        ({"origin": np.inf}, "origin is not an integer"),
        ({"base": np.zeros(0, dtype=np.int64)}, "there is no output"),
        ({"base": np.zeros(1)}, "base is not a list of int64"),
        ({"importance": np.zeros(3)}, "importance does not have one entry per column"),
        ({"weight": np.ones(3)}, "the array 'weight' has the wrong type"),
        ({"value": np.ones(3, dtype=np.int32)}, "the array 'value' has the wrong type"),
        ({"value": np.ones((3, 1), dtype=np.int32)}, "value must have one row per leaf"),
        ({"base": np.zeros(5, dtype=np.int64)}, "its estimators do not have one tree per output"),
        ({"n_averaged": 0}, "n_averaged is not an integer from 1 to 1048576"),
        ({"n_averaged": 2**20 + 1}, "n_averaged is not an integer from 1 to 1048576"),
        ({"n_averaged": 5}, "n_averaged is neither 1 nor the number of estimators"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes, words, ensemble):
    with pytest.raises(ValueError, match=words):
        replace(ensemble, **changes)


def test_leaves_of_several_values_have_one_for_each_output(classifier):
    with pytest.raises(ValueError, match="value does not have one column per output"):
        replace(classifier[0].forest_, base=np.zeros(2, dtype=np.int64))


def test_codes_that_no_column_has_go_one_way(ensemble):
    codes = ensemble.codes.copy()
    codes[0, 3] ^= np.uint64(1 << 63)
    with pytest.raises(ValueError, match="codes that a column lacks go both ways in a split"):
        replace(ensemble, codes=codes)


def test_a_column_without_gaps_has_one_fill(ensemble):
    place = int(np.flatnonzero(ensemble.feature == 0)[0])
    fill = change(ensemble.fill, ensemble.fill[place] + 1, place)
    with pytest.raises(ValueError, match="a column without gaps has a fill of its own"):
        replace(ensemble, fill=fill)


PACKED = [
    ("n_nodes", lambda a: a * 0, "a tree has no node"),
    ("n_nodes", lambda a: a + 1, "does not have .* bits|a node has no parent"),
    ("is_split", lambda a: a[:-1], "does not have .* bits"),
    ("is_split", lambda a: ~a, "a node has no parent, or a child is absent"),
    ("value", lambda a: a[1:], "value does not have one entry per leaf"),
    ("base", lambda a: a[:0], "value does not have one entry per leaf"),
    ("base", lambda a: np.zeros(5, np.int8), "its estimators do not have one tree per output"),
    ("value", lambda a: a.astype(np.int64) + 2**40, "has values beyond int32"),
    ("value", lambda a: a.astype(np.float64), "is not a list of int32"),
    ("value", lambda a: a[:, np.newaxis], "is not a list of int32"),
    ("leaf_weight", lambda a: a[1:], "leaf_weight does not have one entry per leaf"),
    ("leaf_weight", lambda a: a * 0, "a node's rows have no weight"),
    ("column", lambda a: a[1:], "column does not have one entry per split"),
    ("column", lambda a: a * 0 + 4, "a split has an unknown column"),
    ("column", lambda a: a * 0 - 2, "a split has an unknown column"),
    ("missing_left", lambda a: a[1:], "does not have .* bits"),
    ("threshold", lambda a: a[:1], "a split has an unknown threshold"),
    ("threshold", lambda a: np.zeros(len(a), np.int32), "is not a list of float64"),
    ("threshold_index", lambda a: a[1:], "threshold_index does not have one entry per split"),
    ("threshold_index", lambda a: a * np.int8(0) - 1, "a split has an unknown threshold"),
    ("codes", lambda a: a[1:], "codes does not have the bytes of all splits"),
    ("n_terms", lambda a: a[1:], "n_terms does not have one entry per hyperplane"),
    ("n_terms", lambda a: a * np.int8(0) - 1, "a hyperplane has a negative number"),
    ("n_terms", lambda a: a + 1, "feature does not have one entry per term"),
    ("feature", lambda a: a * 0 + 4, "a hyperplane has an unknown column"),
    ("coefficient", lambda a: a[1:], "must have one entry per term"),
    ("fill", lambda a: a[1:], "fill does not have one entry per term whose column has gaps"),
    ("cut", lambda a: a[1:], "cut must have one entry per hyperplane"),
]


@pytest.mark.parametrize(("name", "alter", "words"), PACKED)
def test_packed_arrays_that_do_not_fit_are_refused(name, alter, words, ensemble):
    packed = ensemble_packing.pack(ensemble)
    packed[f"ensemble.{name}"] = alter(packed[f"ensemble.{name}"])
    with pytest.raises(ValueError, match=words):
        Ensemble.from_packed(packed, ensemble.power, ensemble.origin)


@pytest.mark.parametrize("name", list(ensemble_packing.DTYPES))
def test_every_packed_array_is_needed(name, ensemble):
    packed = ensemble_packing.pack(ensemble)
    del packed[name]
    with pytest.raises(ValueError, match=f"the array '{name}' is missing"):
        Ensemble.from_packed(packed, ensemble.power, ensemble.origin)


def test_views_of_trees(fitted):
    model, X = fitted
    trees = model.trees_
    assert len(trees) == len(model.forest_) == model.n_iter_ == 12
    assert sum(tree.n_leaves for tree in trees) == model.get_n_leaves()
    assert all(tree.n_nodes == 2 * tree.n_leaves - 1 for tree in trees)
    assert model.forest_[-1].number == 11
    with pytest.raises(IndexError):
        model.forest_[12]
    assert repr(trees[0]).startswith("BoostedTree(n_nodes=29, n_leaves=15, depth=")
    leaf = model.apply(X)
    total = model.forest_.to_raw(model.forest_.base)
    total = total + sum(tree.value[leaf[:, k]] for k, tree in enumerate(trees))
    np.testing.assert_allclose(total[:, 0], model.predict(X), rtol=1e-12, atol=1e-9)


def test_views_of_trees_have_a_value_for_each_class(classifier):
    model, X = classifier
    forest, leaf = model.forest_, model.apply(X)
    total = forest.to_raw(forest.base)
    for k, tree in enumerate(model.trees_):
        assert tree.value.shape == (tree.n_nodes, 3)
        for node in np.flatnonzero(tree.left >= 0):
            children = tree.value[[tree.left[node], tree.left[node] + 1]]
            fraction = tree.fraction[[tree.left[node], tree.left[node] + 1]]
            mean = fraction @ children / tree.fraction[node]
            np.testing.assert_allclose(tree.value[node], mean, rtol=0, atol=2.0**-24)
        total = total + tree.value[leaf[:, k]]
    np.testing.assert_allclose(total, model.decision_function(X), rtol=1e-12, atol=1e-12)
    assert sum(tree.n_leaves for tree in model.trees_) == len(forest.value)


def list_hyperplanes(model):
    """Yield each tree with the numbers of its splits by hyperplanes."""
    for tree in model.trees_:
        for node in np.flatnonzero((tree.left >= 0) & (tree.column < 0)).tolist():
            yield tree, node


def test_a_hyperplane_in_raw_units_divides_rows_like_the_model():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 6)) * [1, 1e-3, 1e5, 1, 10, 1] + [0, 0, 3e6, 0, 500, -2]
    y = np.sin(X / X.std(axis=0)).sum(axis=1)
    model = LHBoostRegressor(n_estimators=5, n_hyperplanes=3, random_state=0).fit(
        X[:1000], y[:1000]
    )
    rows = np.clip(X[1000:], X[:1000].min(axis=0), X[:1000].max(axis=0))
    path, start = model.decision_path(rows)
    path = path.tocsc()
    n_compared = 0
    for tree, node in list_hyperplanes(model):
        split = tree.split(node)
        feature, weight, cut = split.feature, split.weight, split.threshold
        assert abs(weight[0]) == 1
        passes = path[:, [start[tree.number] + node]].toarray()[:, 0] > 0
        goes_left = path[:, [start[tree.number] + tree.left[node]]].toarray()[:, 0] > 0
        distance = rows[:, feature] @ weight - cut
        # Each value is rounded to its grid by at most half a step.
        columns = model.forest_.columns
        margin = np.abs(weight * np.ldexp(0.5, -columns.power[feature])).sum() * 1.001
        is_clear = passes & (np.abs(distance) > margin)
        assert_array_equal((distance < 0)[is_clear], goes_left[is_clear])
        n_compared += int(np.count_nonzero(is_clear))
        assert np.count_nonzero(is_clear) >= 0.99 * np.count_nonzero(passes)
    assert n_compared > 10_000


def test_only_splits_are_shown_as_such(ensemble):
    tree = ensemble[0]
    leaf = int(np.flatnonzero(tree.left < 0)[0])
    for node in (leaf, -1, tree.n_nodes):
        with pytest.raises(ValueError, match=rf"node={node} is not a split\."):
            tree.split(node)


def test_columns_of_a_model_have_no_bins(ensemble):
    assert len(ensemble.columns.threshold) == 0
    assert isinstance(ensemble.columns, GridColumns)
