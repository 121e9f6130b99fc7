"""The result: a row of the caller's type, or the reason why there is none."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_matrix, csr_array

from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import nearest_counterfactual


def test_a_failure_gives_its_reason(wine):
    X, y = wine
    model = LHTClassifier().fit(X, y)
    none = nearest_counterfactual(model, X.iloc[0], features=["ash"], ranges={"ash": (2.4, 2.5)})
    assert not none.found
    assert none.is_minimal
    assert none.x is None
    assert none.distance == np.inf
    assert none.message == "No change of class is possible."
    one = nearest_counterfactual(LHTClassifier().fit(X, y * 0), X.iloc[0])
    assert not one.found
    assert one.message == "No change of class is possible: the model has only one class."
    leaf = nearest_counterfactual(LHForestClassifier(max_depth=0).fit(X, y), X.iloc[0], n_trials=9)
    assert "may help" in leaf.message or leaf.found


def test_the_slopes_of_a_forest_of_leaves_lead_the_search(wine):
    X, y = wine
    gini = {"contrast": "standardized", "criterion": "gini"}
    model = LHForestClassifier(5, max_depth=0, random_state=0, **gini).fit(X, y)
    assert (model.forest_.left[model.forest_.tree_start[:-1]] < 0).all()
    found = nearest_counterfactual(model, X.iloc[150])
    assert found.found
    assert found.distance < 2.5  # without them 3.04


def test_missing_values_stay_missing():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    X[rng.random(X.shape) < 0.2] = np.nan
    model = LHTClassifier().fit(X, y)
    x = X[np.flatnonzero(np.isnan(X).sum(axis=1) == 2)[0]]
    result = nearest_counterfactual(model, x)
    assert result.is_minimal
    assert_array_equal(np.isnan(result.x), np.isnan(x))
    assert model.predict([result.x])[0] == result.prediction
    empty = nearest_counterfactual(model, np.full(4, np.nan))
    assert empty.message == "No change of class is possible: the row has no number to change."


def test_rows_come_as_many_types(wine):
    X, y = wine
    model = LHTClassifier().fit(X, y)
    before = X.iloc[[5]].copy()
    by_series = nearest_counterfactual(model, X.iloc[5])
    for row in (X.iloc[[5]], X.iloc[5].to_numpy(), X.iloc[5].tolist(), X.iloc[[5]].to_numpy()):
        result = nearest_counterfactual(model, row)
        assert result.distance == by_series.distance
    plain = LHTClassifier().fit(X.to_numpy(), y)
    assert nearest_counterfactual(plain, X.iloc[5].to_numpy()).x.shape == (13,)
    assert_array_equal(before, X.iloc[[5]])


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("make_row", [list, np.array, np.atleast_2d, csr_array, csc_matrix])
def test_rows_without_names_come_back_as_arrays(make_row, is_named, wine):
    X, y = wine
    values = X.iloc[5]
    row = make_row([values]) if make_row in (csr_array, csc_matrix) else make_row(values)
    result = nearest_counterfactual(LHTClassifier().fit(X if is_named else X.to_numpy(), y), row)
    assert result.found
    assert isinstance(result.x, np.ndarray)
    assert result.x.dtype == np.float64
    assert_allclose(result.x, values + result.change)


def test_a_row_of_polars_comes_back_as_one_without_pandas(wine, monkeypatch):
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({name: wine[0][name].to_numpy() for name in wine[0]})
    model = LHTClassifier().fit(X, wine[1].to_numpy())
    monkeypatch.setitem(sys.modules, "pandas", None)
    result = nearest_counterfactual(model, X[5])
    assert isinstance(result.x, pl.DataFrame)
    assert result.x.columns == X.columns
    assert model.predict(result.x)[0] == result.prediction
    assert_allclose(result.x.to_numpy()[0], X[5].to_numpy()[0] + result.change)
    by_array = nearest_counterfactual(model, X[5].to_numpy())
    assert isinstance(by_array.x, np.ndarray)
    assert_array_equal(by_array.x, result.x.to_numpy()[0])


@pytest.mark.parametrize("is_named", [True, False])
def test_numbers_beside_text_stay_numbers(is_named, wine):
    X = wine[0][["alcohol", "proline"]].assign(colour=np.where(wine[0]["hue"] > 1, "a", "b"))
    table = X if is_named else X.to_numpy(dtype=object)
    model = LHTClassifier(categorical_features=[2]).fit(table, wine[1])
    row = X.iloc[5].tolist()
    result = nearest_counterfactual(model, row, desired_class=1)
    assert result.distance == nearest_counterfactual(model, table[5:6], desired_class=1).distance
    assert result.x[2] == row[2]
    assert_allclose((result.x[:2] - np.array(row[:2])).astype(float), result.change[:2])
