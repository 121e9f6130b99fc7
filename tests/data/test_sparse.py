"""Sparse input: the model of dense input, without a dense copy."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from forests import assert_same_model, check_trees
from lhtree import LHForestClassifier, LHTClassifier, _core
from lhtree.data import sparse
from lhtree.model import forest
from lhtree.training.plan import Plan

FORMATS = [
    sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix,
]  # fmt: skip
MARGIN_MODEL = LHForestClassifier(8, preset="paper", voting="margin", beta=0.8, random_state=0)
MODELS = [
    LHTClassifier(),
    LHTClassifier(beta=0.5, standardize=False),
    LHTClassifier(contrast="standardized", criterion="gini", min_samples_leaf=3),
    LHTClassifier(contrast="fisher", criterion="gini"),
    LHForestClassifier(8, random_state=0),
    MARGIN_MODEL,
    LHForestClassifier(8, preset="paper", bootstrap=True, max_features_per_tree=0.5,
                       class_weight="balanced", random_state=0),
    LHForestClassifier(8, max_features=3, max_features_per_tree=0.8, random_state=0),
    LHForestClassifier(8, bootstrap=True, class_weight="balanced_subsample", random_state=0),
]  # fmt: skip


# Their sums are exact on all numbers.
EXACT_FORESTS = [MODELS[4], *MODELS[7:]]
# Their sums are exact on integers.
EXACT_MODELS = [
    LHTClassifier(standardize=False),
    LHTClassifier(standardize=False, beta=0.5, criterion="gini", min_weight_fraction_leaf=0.05),
    LHForestClassifier(4, preset="paper", standardize=False, bootstrap=True, random_state=0),
    LHForestClassifier(4, contrast="mean", standardize=False, max_depth=4, random_state=0),
    LHForestClassifier(4, contrast="mean", criterion="purity", n_hyperplanes=7, max_features=5,
                       max_features_per_tree=0.8, standardize=False, random_state=0),
]  # fmt: skip


def make_table(n=150, m=30, density=0.15, seed=0):
    """Return reals, most of them zero, with empty rows and columns and one full column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * (rng.random((n, m)) < density) * rng.uniform(0.1, 10, m)
    X[:, 0] = rng.normal(size=n) + 3
    X[:, 1] = X[3] = 0
    y = (X[:, 0] + X[:, 2:6].sum(axis=1) + rng.normal(size=n) > 3).astype(int)
    return X, y + (X[:, 7] != 0)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_sparse_rows_give_the_predictions_of_dense_ones(model):
    X, y = make_table()
    new, _ = make_table(seed=1)
    dense = model.fit(X, y)
    labels, proba, leaves = dense.predict(new), dense.predict_proba(new), dense.apply(X)
    importances = dense.feature_importances_
    sparse = model.fit(sp.csr_array(X), y)
    check_trees(sparse.forest_)
    assert_array_equal(sparse.predict(new), labels)
    assert_allclose(sparse.predict_proba(sp.csr_array(new)), proba, atol=1e-9)
    assert_array_equal(sparse.predict_proba(sp.csr_array(new)), sparse.predict_proba(new))
    assert_array_equal(sparse.apply(sp.csr_array(X)), leaves)
    assert_allclose(sparse.feature_importances_, importances, atol=1e-9)


@settings(max_examples=60)
@given(
    st.sampled_from([model for model in MODELS if model is not MARGIN_MODEL]),
    st.integers(0, 2**32), st.sampled_from([0.1, 0.5]),
    st.sampled_from(FORMATS), st.booleans(), st.sampled_from([np.float64, np.float32]),
)  # fmt: skip
def test_reals_of_every_format_give_the_predictions_of_dense_ones(
    model, seed, density, form, is_weighted, dtype
):
    X, y = make_table(60, 12, density, seed)
    X = X.astype(dtype)
    weight = np.random.default_rng(seed).integers(1, 3, len(X)) if is_weighted else None
    dense = model.fit(X.astype(np.float64), y, sample_weight=weight)
    labels, proba = dense.predict(X), dense.predict_proba(X)
    sparse = model.fit(form(X), y, sample_weight=weight)
    assert_allclose(sparse.predict_proba(form(X)), proba, atol=1e-9)
    assert_array_equal(sparse.predict(form(X)), labels)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([0.1, 0.5]), st.sampled_from(FORMATS))
def test_margins_of_every_format_are_nearly_those_of_dense_ones(seed, density, form):
    # A row on a hyperplane has a margin of nothing but rounding: labels may differ.
    X, y = make_table(60, 12, density, seed)
    proba = MARGIN_MODEL.fit(X, y).predict_proba(X)
    assert_allclose(MARGIN_MODEL.fit(form(X), y).predict_proba(form(X)), proba, atol=1e-6)


@settings(max_examples=40)
@given(
    st.sampled_from(EXACT_FORESTS), st.integers(0, 2**32), st.sampled_from([0.1, 0.5]),
    st.sampled_from(FORMATS), st.booleans(), st.sampled_from([np.float64, np.float32]),
)  # fmt: skip
def test_reals_give_the_exact_forest_of_dense_rows_bit_for_bit(
    model, seed, density, form, is_weighted, dtype
):
    X, y = make_table(60, 12, density, seed)
    X = X.astype(dtype)
    weight = np.random.default_rng(seed).uniform(0, 3, len(X)) if is_weighted else None
    dense = clone(model).fit(X.astype(np.float64), y, sample_weight=weight)
    sparse = clone(model).fit(form(X), y, sample_weight=weight)
    assert_same_model(sparse, dense)
    assert_array_equal(sparse.predict_proba(form(X)), dense.predict_proba(X))


@settings(max_examples=100)
@given(
    st.sampled_from(EXACT_MODELS), st.integers(0, 2**32), st.sampled_from([0.02, 0.1, 0.5]),
    st.sampled_from(FORMATS), st.booleans(), st.sampled_from([np.int8, np.int64, np.float32]),
)  # fmt: skip
def test_integers_give_the_model_of_dense_rows_bit_for_bit(
    model, seed, density, form, is_weighted, dtype
):
    X, y = make_table(60, 12, density, seed)
    X = np.clip(np.round(X), -5, 5).astype(dtype)
    weight = np.random.default_rng(seed).integers(0, 3, len(X)) + (y == 0) if is_weighted else None
    dense = dict(vars(model.fit(X.astype(np.float64), y, sample_weight=weight).forest_))
    sparse = model.fit(form(X), y, sample_weight=weight)
    for name, array in vars(sparse.forest_).items():
        assert_array_equal(array, dense[name], name)


@settings(max_examples=30)
@given(
    st.sampled_from(EXACT_MODELS[:2]),  # all rows grow all trees
    st.integers(0, 2**32), st.sampled_from([0.02, 0.1, 0.5]), st.sampled_from(FORMATS),
)  # fmt: skip
def test_training_rows_reach_the_leaves_they_grew(model, seed, density, form):
    X, y = make_table(60, 12, density, seed)
    X = form(np.clip(np.round(X), -5, 5))
    leaf = model.fit(X, y).apply(X)
    for k, tree in enumerate(model.trees_):
        count = np.bincount(leaf[:, k], minlength=tree.n_nodes)
        assert_array_equal(count[tree.left < 0], tree.n_samples[tree.left < 0])


@pytest.mark.parametrize("model", MODELS[:1] + MODELS[4:6], ids=str)
def test_zeros_and_duplicates_that_are_stored_change_nothing(model):
    X, y = make_table(60, 12)
    row, column = np.indices(X.shape).reshape(2, -1)
    halves = np.concatenate([X.ravel() / 2, X.ravel() / 2])
    twice = sp.coo_array((halves, (np.tile(row, 2), np.tile(column, 2))), X.shape)
    before = twice.copy()
    expected = model.fit(sp.csr_array(X), y).predict_proba(X)
    assert_array_equal(model.fit(twice, y).predict_proba(twice), expected)
    assert_array_equal(twice.data, before.data)  # the caller's table stays as it is
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert_array_equal(model.fit(wide, y).predict_proba(wide), expected)


def test_a_full_column_far_from_zero_keeps_its_digits():
    rng = np.random.default_rng(0)
    X = np.zeros((200, 3))
    X[:, 0] = 1e8 + 1e-3 * np.round(rng.normal(size=200) * 100)
    X[::5, 1] = 1
    y = X[:, 0] > 1e8
    for model in (LHTClassifier(), LHForestClassifier(5, random_state=0)):
        assert model.fit(sp.csr_array(X), y).score(X, y) == model.fit(X, y).score(X, y) == 1
    std = LHTClassifier().fit(sp.csr_array(X), y).forest_.column_std
    assert_allclose(std, LHTClassifier().fit(X, y).forest_.column_std, rtol=1e-6)


def test_out_of_bag_rows_are_scored():
    X, y = make_table(400)
    model = LHForestClassifier(12, max_samples=0.3, oob_score=True, random_state=0)
    expected = model.fit(X, y).oob_decision_function_
    assert_array_equal(model.fit(sp.csr_array(X), y).oob_decision_function_, expected)
    model.set_params(contrast="standardized")
    expected = model.fit(X, y).oob_decision_function_
    assert_allclose(model.fit(sp.csr_array(X), y).oob_decision_function_, expected, atol=1e-9)


def test_predictions_of_many_chunks_are_those_of_one(monkeypatch):
    X, y = make_table(400)
    model = LHForestClassifier(12, max_samples=0.3, oob_score=True, random_state=0).fit(
        sp.csr_array(X), y
    )
    expected = model.predict_proba(X), model.apply(X), model.oob_decision_function_
    monkeypatch.setattr("lhtree.data.sparse.MOST_NUMBERS", 64 * 30)
    model.fit(sp.csr_array(X), y)
    table = sp.csr_array(X)
    found = model.predict_proba(table), model.apply(table), model.oob_decision_function_
    for a, b in zip(found, expected, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("voting", ["membership", "margin"])
def test_predictions_of_wide_rows_read_the_columns_that_trees_use(monkeypatch, voting):
    rng = np.random.default_rng(0)
    X = sp.random(400, 20_000, density=0.002, format="csr", random_state=0)
    y = np.asarray(X.sum(axis=1)).ravel() > np.median(np.asarray(X.sum(axis=1)))
    kind = {"criterion": "gini", "contrast": "standardized", "axis_splits": True}
    model = LHForestClassifier(4, **kind, voting=voting, max_depth=3, random_state=0).fit(X, y)
    widths = []

    def note_width(rows):
        widths.append(rows.shape[1])
        return sparse.split_blocks(rows)

    monkeypatch.setattr(forest, "split_blocks", note_width)
    rows = X[rng.permutation(400)[:50]]
    proba, leaf = model.predict_proba(rows), model.apply(rows)
    assert 0 < max(widths) < 20_000
    assert_array_equal(proba, model.predict_proba(rows.toarray()))
    assert_array_equal(leaf, model.apply(rows.toarray()))


@given(st.sets(st.integers(0, 200), min_size=1))
def test_places_of_columns_keep_order_and_lane(columns):
    column = np.array(sorted(columns))
    place = sparse.renumber_columns(column)
    assert_array_equal(place % 8, column % 8)
    assert (np.diff(place) > 0).all()
    assert (place <= column).all()


def test_bad_sparse_tables_get_a_sentence():
    X, y = make_table(20, 8)
    for value, message in [(np.nan, "sparse and has a missing value"), (np.inf, "infinity")]:
        bad = X.copy()
        bad[2, 3] = value
        with pytest.raises(ValueError, match=message):
            LHTClassifier().fit(sp.csr_array(bad), y)
    bad[2, 3] = 1e200
    with pytest.raises(ValueError, match=r"squares overflow, in column 3; divide"):
        LHTClassifier().fit(sp.csr_array(bad), y)
    model = LHTClassifier().fit(sp.csr_array(X), y)
    with pytest.raises(ValueError, match="X has 4 features"):
        model.predict(sp.csr_array(X[:, :4]))
    assert np.isfinite(model.predict_proba(np.full((1, 8), np.nan))).all()
    assert len(model.encode_rows(sp.csr_array(X))) == 20


@pytest.mark.parametrize(
    ("start", "column"), [([0, 2], [1, 0]), ([0, 1], [7]), ([0, 3], [0]), ([1, 1], [0])]
)
def test_the_core_refuses_arrays_that_are_not_a_sparse_table(start, column):
    plan = Plan(n_classes=2, positive_class=(1,), beta=(0.0,), n_draws=1)
    arrays = np.array(start), np.array(column, dtype=np.int32), np.ones(len(column))
    with pytest.raises(ValueError, match="are not a sparse table"):
        _core.grow_sparse(*arrays, 3, np.zeros(1, dtype=np.int32), None, plan, 1, None)


LARGE = """
import resource, numpy as np, scipy.sparse as sp
from lhtree import LHForestClassifier, LHTClassifier
rng = np.random.default_rng(0)
X = sp.csr_array(sp.random(20_000, 50_000, 0.001, random_state=rng))
y = (X[:, :5000].sum(axis=1) > X[:, 5000:10000].sum(axis=1)).astype(int)
model = {model}.fit(X, y)
assert model.score(X[:500], y[:500]) > {least}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units")
@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("LHTClassifier()", 0.8),
        ("LHForestClassifier(3, preset='paper', random_state=0)", 0.8),
        # A few splits see a few of the columns, none of which says much.
        ("LHForestClassifier(2, max_depth=6, random_state=0)", 0.5),
    ],
)
def test_twenty_thousand_by_fifty_thousand_fit_into_memory(model, least):
    run = subprocess.run(
        [sys.executable, "-c", LARGE.format(model=model, least=least)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 2e6  # kilobytes


def test_sparse_rows_are_not_added_to_estimators_of_centred_ones():
    rng = np.random.default_rng(0)
    X = rng.poisson(2.0, (80, 4)).astype(float)
    y = (X[:, 0] > 2).astype(int)
    kind = {"contrast": "standardized", "warm_start": True, "random_state": 0}
    model = LHForestClassifier(2, **kind).fit(X, y)
    model.set_params(n_estimators=3)
    with pytest.raises(ValueError, match="X is sparse, but warm_start=True adds to estimators"):
        model.fit(sp.csr_array(X), y)
    assert model.fit(X, y).n_estimators_ == 3
    model = LHForestClassifier(2, **kind).fit(sp.csr_array(X), y)
    model.set_params(n_estimators=30).fit(X, y)
    assert model.score(X, y) > 0.95


def test_a_warm_start_takes_the_same_rows_dense_or_sparse():
    X, y = make_table()
    kind = {"shrinkage": 1.0, "random_state": 0}
    long = LHForestClassifier(5, **kind).fit(X, y)
    for first, second in ((X, sp.csc_array(X)), (sp.csr_array(X), X)):
        model = LHForestClassifier(2, **kind, warm_start=True).fit(first, y)
        assert_same_model(model.set_params(n_estimators=5).fit(second, y), long)
