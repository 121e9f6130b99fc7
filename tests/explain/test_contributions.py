"""How much each feature adds to a vote, and the paths of rows."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import explain_reference
from hand_made import make_hand_made_model
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import (
    explain_rows,
    nearest_counterfactual,
    split_table,
)


def test_contributions_by_hand():
    # z = (2, -1): the split adds 1 * 1.5 and -0.5 * 0, so x0 gets all of the change
    # 0.375 to the right. In the leaf 0.25 * 1 and -0.5 * -1 lead to 1.5: of the 0.5 that is
    # cut off, x0 bears a third, x1 two thirds.
    explanation = explain_rows(make_hand_made_model(), np.array([[2.0, -1.0]]), paths=True)
    assert_allclose(explanation.base, [0.625, 0.375])
    assert_allclose(explanation.score, [[0, 1]])
    right = [0.375 + 0.25 - 0.5 / 3, 0.5 - 1 / 3]
    assert_allclose(explanation.contribution[0, 1], right)
    assert_allclose(explanation.contribution[0, 0], np.negative(right))
    (path,) = explanation.paths[0]
    assert_array_equal(path.node, [0])
    assert path.is_right.all()
    assert path.leaf == 2
    assert path.positive_class == "yes"
    assert_allclose(path.contribution, [[1.5, 0.0]])
    assert_allclose(path.constant, [1 * 0.5 - 0.5 * -1 - 1])
    assert_allclose(path.distance, [1.5 / np.sqrt(1.25)])
    assert_allclose(path.leaf_contribution, [0.25, 0.5])
    assert_allclose(path.value, [0.375, 0.75])
    assert path.membership == 1.0


def test_a_change_at_the_center_is_divided_by_the_weights():
    # The row lies at the split's center, on the hyperplane, and goes right. In the leaf
    # -0.125 and 0.5 lead to 1.125; of what is cut off, x0 bears a fifth.
    explanation = explain_rows(make_hand_made_model(), np.array([[0.5, -1.0]]))
    assert_allclose(explanation.contribution[0, 1], [0.25 - 0.125 - 0.025, 0.125 + 0.5 - 0.1])


def test_huge_contributions_that_would_cancel_still_add_up():
    far = np.array([[1e150, 1e150], [1e9, 1e8], [-1e12, -1e13]])
    explanation = explain_rows(make_hand_made_model(), far)
    total = explanation.base + explanation.contribution.sum(axis=-1)
    assert_allclose(total, explanation.score, rtol=0, atol=1e-9)


def make_models():
    """Yield models of many kinds with rows to explain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 9)) * [1, 1e3, 1e-3, 1, 1, 1, 1, 1, 5]
    X[:, 1] += 1e5
    y = (X[:, 0] + X[:, 8] / 5 + 0.7 * rng.normal(size=120) > 0).astype(int)
    many = y + (X[:, 3] > 0.5)
    weight = rng.uniform(0.1, 3, 120)
    yield "single", LHTClassifier().fit(X, many), X
    yield "sparse", LHTClassifier(beta=0.7, min_samples_split=15).fit(X, many, weight), X
    yield "lines", LHTClassifier(max_depth=2).fit(X, many), X + rng.normal(size=X.shape)
    yield "two classes", LHTClassifier(max_depth=3).fit(X, y), X
    yield "one class", LHTClassifier().fit(X, np.zeros(120)), X
    yield "roots", LHTClassifier(max_depth=0).fit(X, many), X
    yield "raw", LHTClassifier(standardize=False, max_depth=3).fit(X, many), X
    yield "float32", LHTClassifier(max_depth=3).fit(X, y), X.astype(np.float32)
    settings = {"n_estimators": 4, "random_state": 0, "n_jobs": 2}
    gini = settings | {"contrast": "standardized", "criterion": "gini"}
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    holes[3] = np.nan
    yield "missing", LHTClassifier(max_depth=4).fit(holes, many, weight), holes
    yield "missing forest", LHForestClassifier(**gini).fit(holes, y), holes
    yield "forest", LHForestClassifier(**gini).fit(X, many, weight), X
    yield "paper", LHForestClassifier(preset="paper", beta=0.5, **settings).fit(X, y), X
    margin = LHForestClassifier(voting="margin", max_depth=3, **settings)
    yield "margin", margin.fit(X, many), X


@pytest.mark.parametrize(("model", "X"), [
    pytest.param(model, X, id=name) for name, model, X in make_models()
])  # fmt: skip
def test_contributions_equal_the_reference_and_add_up(model, X):
    explanation = explain_rows(model, X[:40])
    base, total, vote = explain_reference.explain(model, X[:40].astype(float))
    assert_allclose(explanation.base, base, rtol=0, atol=1e-12)
    assert_allclose(explanation.contribution, total, rtol=0, atol=1e-9)
    assert_allclose(explanation.score, vote, rtol=0, atol=1e-9)
    summed = explanation.base + explanation.contribution.sum(axis=-1)
    assert_allclose(summed, explanation.score, rtol=0, atol=1e-9)
    if getattr(model, "voting", "membership") == "membership":
        sums = model.forest_.vote(np.ascontiguousarray(X[:40]), n_classes=model.n_classes_)[0]
        mean = sums[:, -1] / model.n_estimators_
        assert_allclose(explanation.score[:, -1], mean, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("model", "X"), [
    pytest.param(model, X, id=name) for name, model, X in make_models()
])  # fmt: skip
def test_paths_add_up_to_projections_and_memberships(model, X):
    X = X[:15]
    explanation = explain_rows(model, X, paths=True)
    leaf = model.apply(X)
    Z = (X.astype(float) - model.forest_.column_mean) / model.forest_.column_std
    for i, paths in enumerate(explanation.paths):
        for tree, path in zip(model.trees_, paths, strict=True):
            assert path.leaf == leaf[i, tree.number]
            for step, node in enumerate(path.node):
                feature, weight, center, _ = tree.terms(node)
                filled = np.where(np.isnan(Z[i, feature]), center, Z[i, feature])
                score = explain_reference.project(feature, weight, filled)
                score -= tree.threshold[node]
                given = path.contribution[step].sum() + path.constant[step]
                assert_allclose(given, score, rtol=0, atol=1e-9)
                norm = np.linalg.norm(weight)
                assert_allclose(path.distance[step], score / norm, rtol=0, atol=1e-9)
                following = [*path.node[1:], path.leaf][step]
                assert following == tree.left[node] + path.is_right[step]
            unclipped = path.leaf_contribution.sum() + path.value[-1]
            assert_allclose(np.clip(unclipped, 0, 1), path.membership, rtol=0, atol=1e-9)
    for k in range(model.n_classes_):
        own = [
            [path.membership for path in paths if path.positive_class == model.classes_[k]]
            for paths in explanation.paths
        ]
        if own[0]:
            assert_allclose(np.mean(own, axis=1), explanation.score[:, k], rtol=0, atol=1e-9)


def test_a_missing_value_contributes_nothing_beside_values_that_are_present():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 5))
    y = (X.sum(axis=1) > 0).astype(int) + (X[:, 0] > 1)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    for model in (LHTClassifier(), LHForestClassifier(preset="paper", beta=0.0, n_estimators=3)):
        model.fit(X, y)  # nearly every split uses all columns
        explanation = explain_rows(model, X, paths=True)
        is_missing = np.isnan(X)
        for i, paths in enumerate(explanation.paths):
            is_off_center = all(
                len(path.node) == 0 or path.contribution.any(axis=1).all() for path in paths
            )
            if is_off_center:
                assert not explanation.contribution[i][:, is_missing[i]].any()
            for path in paths:
                assert not path.contribution[:, is_missing[i]].any()
                assert not path.leaf_contribution[is_missing[i]].any()


def test_explanations_do_not_depend_on_threads():
    _, model, X = next(make_models())
    X = np.tile(X, (20, 1))
    one = explain_rows(model.set_params(), X)
    model.n_jobs = 3
    three = explain_rows(model, X)
    assert_array_equal(one.contribution, three.contribution)


def test_a_long_explanation_can_be_interrupted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    model = LHForestClassifier(preset="paper", n_estimators=10, n_jobs=1)
    model.fit(X, rng.integers(0, 3, 2000))
    X = np.tile(X, (20, 1))
    sent = []

    def interrupt():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def explain_for_long():
        for _ in range(100):  # a machine may be fast
            explain_rows(model, X)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        explain_for_long()
    delay = time.monotonic() - sent[0]
    killer.join()
    assert delay < 1.0


def test_the_indicators_of_a_category_add_up_to_its_feature():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({
        "size": rng.normal(size=150),
        "colour": rng.choice(["red", "green", "blue"], 150),
        "width": rng.normal(size=150),
    })  # fmt: skip
    y = np.where((X["colour"] == "red") ^ (X["size"] > 0.8), "yes", "no")
    model = LHTClassifier(categorical_features="from_dtype").fit(X, y)
    explanation = explain_rows(model, X)
    assert "colour=red" in explanation.column_names
    short = explanation.by_feature()
    assert short.column_names == ["size", "colour", "width"]
    is_colour = [name.startswith("colour=") for name in explanation.column_names]
    expected = explanation.contribution[..., is_colour].sum(axis=-1)
    assert_allclose(short.contribution[..., 1], expected, atol=1e-12)
    total = short.base + short.contribution.sum(axis=-1)
    assert_allclose(total, explanation.score, rtol=0, atol=1e-9)
    assert split_table(model)["feature_1"].isin(explanation.column_names).all()
    result = nearest_counterfactual(model, X.iloc[[0]])
    assert result.found
    assert result.is_minimal
    assert result.x["colour"].item() == X["colour"].iloc[0]
    assert np.isnan(result.change[1])
    assert model.predict(result.x)[0] == result.prediction
    with pytest.raises(ValueError, match="features has 'colour', which holds categories"):
        nearest_counterfactual(model, X.iloc[[0]], features=["colour"])
