"""Trees of a cluster are those of one process."""

from dataclasses import fields

import numpy as np
import pytest

from lhtree import check_forest
from old_engine import fit_old_forest

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from lhtree import dask as ld  # noqa: E402
from lhtree.dask import cuts  # noqa: E402

ROW_LIMIT = 50  # forces nodes to grow in rounds


# distributed warns on a slow disk or a busy machine, which is not a failure.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:distributed")


@pytest.fixture(scope="module")
def client():
    """Two worker processes."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def make_integers(n=400, seed=0):
    """Small integers, on which sums are exact; the third class is rare, and at the end."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-5, 6, (n, 9)).astype(float)
    y = np.array(["a", "b", "c"])[(X[:, 0] + 2 * X[:, 1] + rng.normal(0, 3, n) > 0).astype(int)]
    y[-9:] = "c"
    return X, y


def spread(array, chunks):
    """Put rows on the cluster."""
    rows = chunks if isinstance(chunks, int) else (chunks,)
    if array.ndim == 1:
        return da.from_array(array, rows)
    return da.from_array(array, (chunks, -1))


def list_differences(one, other):
    """Return the names of the arrays in which two forests differ."""
    return [
        field.name
        for field in fields(one)
        if not np.array_equal(getattr(one, field.name), getattr(other, field.name))
    ]


PAPER = {"preset": "paper", "n_estimators": 2, "max_depth": 4}
DEFAULT = {"n_estimators": 2, "max_depth": 4}
ROUGH = {
    "n_estimators": 2, "contrast": "standardized", "max_depth": 4, "alpha": 2.0, "beta": 0.5,
    "max_features_per_tree": 6, "min_weight_fraction_leaf": 0.02, "class_weight": {"b": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "chunks"),
    [
        (PAPER, 400),
        (DEFAULT, 200),
        (DEFAULT, (60, 0, 1, 99, 1, 200, 39)),
        (PAPER, (100, 0, 1, 299)),
        (ROUGH, (60, 0, 1, 99, 1, 200, 39)),
        ({**DEFAULT, "n_estimators": 1, "max_depth": 2}, 7),
    ],
)
def test_trees_are_those_of_a_local_fit_bit_for_bit_where_sums_are_exact(
    client, parameters, chunks
):
    X, y = make_integers()
    parameters = {"random_state": 1, "standardize": False, **parameters}
    local = fit_old_forest(parameters, X, y)
    model = ld.LHForestClassifier(row_limit=ROW_LIMIT, **parameters)
    model.fit(spread(X, chunks), spread(y, chunks))
    check_forest(model.forest_)
    assert list_differences(local.forest_, model.forest_) == []
    assert model.shrinkage_ == local.shrinkage_
    np.testing.assert_array_equal(model.to_local().predict_proba(X), local.predict_proba(X))


@pytest.mark.parametrize("n_listed", [0, 3])
def test_bins_that_hold_many_rows_are_divided_until_the_cut_is_exact(
    client, monkeypatch, n_listed
):
    rng = np.random.default_rng(3)
    X = rng.integers(-90, 91, (600, 4)).astype(float) ** 3  # few bins hold nearly all rows
    y = X[:, 0] + X[:, 1] + 1e5 * rng.normal(size=600) > 0
    parameters = {"random_state": 1, "standardize": False, **DEFAULT}
    local = fit_old_forest(parameters, X, y)
    monkeypatch.setattr(cuts, "FEWEST_LISTED", n_listed)
    monkeypatch.setattr(cuts, "FEWEST_BINS", 4)
    monkeypatch.setattr(cuts, "N_NUMBERS", 0)
    monkeypatch.setattr(cuts, "MOST_STEPS", 24)
    looks, look = [], cuts._look_into
    monkeypatch.setattr(cuts, "_look_into", lambda *given: looks.append(1) or look(*given))
    model = ld.LHForestClassifier(row_limit=ROW_LIMIT, **parameters)
    model.fit(spread(X, 100), spread(y, 100))
    assert len(looks) >= 5
    np.testing.assert_array_equal(model.forest_.left, local.forest_.left)
    np.testing.assert_array_equal(model.forest_.threshold, local.forest_.threshold)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_integer_weights_give_the_trees_of_a_local_fit(client, bootstrap):
    X, y = make_integers()
    weight = np.random.default_rng(2).integers(0, 4, len(X)).astype(float)
    parameters = {"random_state": 1, "standardize": False, "bootstrap": bootstrap, **DEFAULT}
    local = fit_old_forest(parameters, X, y, weight)
    model = ld.LHForestClassifier(row_limit=ROW_LIMIT, **parameters)
    model.fit(spread(X, 150), spread(y, 150), spread(weight, 150))
    assert list_differences(local.forest_, model.forest_) == []


@pytest.mark.parametrize("class_weight", [None, {"b": 0}])
def test_classes_of_weight_zero_are_absent(client, class_weight):
    X, y = make_integers()
    y = np.where(np.arange(len(y)) % 7 == 0, "ab", y)  # between the others
    weight = (y != "ab") * np.random.default_rng(2).integers(0, 4, len(X))
    parameters = {**DEFAULT, "random_state": 1, "standardize": False, "class_weight": class_weight}
    local = fit_old_forest(parameters, X, y, weight)
    model = ld.LHForestClassifier(row_limit=ROW_LIMIT, **parameters)
    model.fit(spread(X, 150), spread(y, 150), spread(weight, 150))
    assert "ab" not in model.classes_
    np.testing.assert_array_equal(model.classes_, local.classes_)
    assert list_differences(local.forest_, model.forest_) == []


@pytest.mark.parametrize("parameters", [PAPER, DEFAULT])
@pytest.mark.parametrize("class_weight", [None, "balanced_subsample"])
def test_rounding_changes_no_prediction(client, parameters, class_weight):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(500, 6)) * [1, 1e3, 1e-3, 1, 10, 1] + [0, 1e6, 0, 0, -5, 0]
    y = (X[:, 0] + X[:, 3] + rng.normal(size=500) > 0).astype(int) + (X[:, 5] > 1.5)
    weight = rng.random(500)
    parameters = {"random_state": 1, "class_weight": class_weight, **parameters}
    local = fit_old_forest(parameters, X, y, weight)
    model = ld.LHForestClassifier(row_limit=ROW_LIMIT, **parameters)
    model.fit(spread(X, 130), spread(y, 130), spread(weight, 130))
    check_forest(model.forest_)
    np.testing.assert_array_equal(model.forest_.left, local.forest_.left)
    X_new = rng.normal(size=(2000, 6)) * [1, 1e3, 1e-3, 1, 10, 1] + [0, 1e6, 0, 0, -5, 0]
    assert np.mean(model.to_local().predict(X_new) == local.predict(X_new)) >= 0.9999
