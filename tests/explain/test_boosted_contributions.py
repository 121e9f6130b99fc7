"""What each column adds to the raw scores of a boosted model."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import explain_reference
from boosted import CLASSIFIERS, FORESTS, NAMES, fit_boosted, get_scores
from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.explain import explain_rows
from lhtree.explain.row_text import describe_values


@pytest.mark.parametrize("name", NAMES)
def test_contributions_equal_the_reference(name):
    model, X = fit_boosted(name)
    ensemble, X = model.forest_, X.iloc[[*range(12), *range(150, 158)]]
    table = np.ascontiguousarray(model.encode_rows(X))
    expected = [explain_reference.explain_boosted(ensemble, row) for row in table]
    assert ensemble.divide(table).tolist() == expected


@pytest.mark.parametrize("name", NAMES)
def test_contributions_add_up_to_the_scores_without_a_rest(name):
    model, X = fit_boosted(name)
    explanation = explain_rows(model, X)
    score = get_scores(model, X)
    summed = explanation.base + explanation.contribution.sum(axis=-1)
    if name in FORESTS:  # thirds and sevenths are rounded
        assert_allclose(summed, explanation.score, rtol=1e-14, atol=1e-14)
    else:
        assert_array_equal(summed, explanation.score)
    if name in CLASSIFIERS and CLASSIFIERS[name][1] == 2:
        assert_array_equal(explanation.score, score * [-1, 1])
        assert_array_equal(explanation.contribution[:, 0], -explanation.contribution[:, 1])
        assert_array_equal(explanation.base[0], -explanation.base[1])
        assert_array_equal(explanation.score[:, 1], model.decision_function(X))
    else:
        assert_array_equal(explanation.score, score)
    assert not np.signbit(explanation.contribution[explanation.contribution == 0]).any()


def test_the_base_is_the_mean_score_of_the_training_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    model = LHBoostRegressor(n_estimators=30).fit(X, X[:, 0] * X[:, 1])
    explanation = explain_rows(model, X)
    assert explanation.base[0] == pytest.approx(model.predict(X).mean(), abs=1e-4)


def test_the_first_of_equal_parts_takes_what_rounding_leaves_over():
    pairs = np.stack(np.meshgrid(np.arange(15.0), np.arange(15.0)), axis=-1).reshape(-1, 2)
    model = LHBoostRegressor(n_estimators=9).fit(pairs, pairs.sum(axis=1))  # equal weights
    ensemble, same = model.forest_, np.repeat(np.arange(15.0), 2).reshape(-1, 2)
    coefficient = ensemble.coefficient.reshape(-1, 2)
    assert (coefficient[:, 0] == coefficient[:, 1]).any()
    expected = [explain_reference.explain_boosted(ensemble, row) for row in same]
    assert ensemble.divide(same).tolist() == expected
    assert any(first != second for ((first, second),) in expected)


def test_a_column_that_no_split_uses_adds_nothing():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), np.ones(300)])
    model = LHBoostRegressor(n_estimators=5).fit(X, X[:, 0])
    assert not explain_rows(model, X).contribution[..., 1].any()
    assert explain_rows(model, X).contribution[..., 0].all()


def test_outputs_are_named_by_what_the_scores_are():
    named = {name: explain_rows(*fit_boosted(name)).output_names for name in NAMES}
    assert named["numbers"] == ("prediction",)
    assert named["one class"] == ("score of 0",)
    assert named["two classes"] == ("log-odds of 0", "log-odds of 1")
    assert named["three classes"] == ("score of 0", "score of 1", "score of 2")


def test_values_of_a_row_are_texts_with_the_names_of_categories():
    model, X = fit_boosted("two classes")
    explanation = explain_rows(model, X)
    texts = [describe_values(explanation, i)[3] for i in range(7)]
    expected = [str(value) if isinstance(value, str) else "missing" for value in X["color"][:5]]
    assert texts == [*expected, "missing", "missing"]
    assert describe_values(explanation, 3)[0] == "missing"
    assert explanation.by_feature().column_names == list(X)


def test_threads_blocks_and_the_kind_of_table_change_nothing():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.4] = 0
    model = LHBoostClassifier(n_estimators=9, n_jobs=1).fit(X, X[:, 0] + X[:, 1] > 0.3)
    one = explain_rows(model, X)
    for other in (X.astype(np.float64), csr_array(X)):
        assert_array_equal(explain_rows(model, other).contribution, one.contribution)
    model.n_jobs = 2
    assert_array_equal(explain_rows(model, X).contribution, one.contribution)
    assert_array_equal(explain_rows(model, X[7:9]).contribution, one.contribution[7:9])


def test_a_thousand_rows_and_a_hundred_trees_take_less_than_a_second():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 20))
    model = LHBoostRegressor(n_estimators=100, n_jobs=1).fit(X, X[:, :5].sum(axis=1))
    start = time.process_time()
    explain_rows(model, X)
    assert time.process_time() - start < 1


def test_paths_of_boosted_models_are_refused_with_a_remedy():
    model, X = fit_boosted("numbers")
    with pytest.raises(TypeError, match=r"paths=True is for an LHTC.* decision_path has"):
        explain_rows(model, X, paths=True)
