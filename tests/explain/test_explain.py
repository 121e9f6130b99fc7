"""Explanations: what the splits are, and what each feature adds to a vote."""

import builtins
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError

import explain_reference
from hand_made import make_hand_made_model
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import (
    class_importances,
    explain_rows,
    interactions,
    nearest_counterfactual,
    split_table,
    split_view,
)
from lhtree.explain.splits import find_pure_side


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


def test_split_table_of_a_hand_made_tree():
    table = split_table(make_hand_made_model(standardize=True), n_features=3)
    assert len(table) == 1
    row = {name: table[name][0] for name in table}
    assert row == {
        "tree": 0, "member": 0, "target": "yes", "node": 0, "depth": 0, "n_samples": 8,
        "weight_sum": 8.0, "share": 0.375, "rule": "N3", "threshold": 1.0,
        # z_a - z_b / 2 = (a - 10) / 2 - (b - 20) / 8 < 1: a / 2 - b / 8 < 1 + 5 - 2.5
        "threshold_raw": 3.5,
        "feature_1": "x0", "weight_1": 1.0, "raw_weight_1": 0.5,
        "feature_2": "x1", "weight_2": -0.5, "raw_weight_2": -0.125,
    }  # fmt: skip


def test_contributions_by_hand():
    # z = (2, -1): parts at the split 1 * 1.5 and -0.5 * 0, so x0 gets all of the change
    # 0.375 to the right. In the leaf 0.25 * 1 and -0.5 * -1 lead to 1.5: of the 0.5 that is
    # cut off, x0 bears a third, x1 two thirds.
    explanation = explain_rows(make_hand_made_model(), np.array([[2.0, -1.0]]), paths=True)
    assert_allclose(explanation.base, [0.625, 0.375])
    assert_allclose(explanation.vote, [[0, 1]])
    right = [0.375 + 0.25 - 0.5 / 3, 0.5 - 1 / 3]
    assert_allclose(explanation.contribution[0, 1], right)
    assert_allclose(explanation.contribution[0, 0], np.negative(right))
    (path,) = explanation.paths[0]
    assert_array_equal(path.node, [0])
    assert path.is_right.all()
    assert path.leaf == 2
    assert path.target == "yes"
    assert_allclose(path.contribution, [[1.5, 0.0]])
    assert_allclose(path.constant, [1 * 0.5 - 0.5 * -1 - 1])
    assert_allclose(path.distance, [1.5 / np.sqrt(1.25)])
    assert_allclose(path.leaf_contribution, [0.25, 0.5])
    assert_allclose(path.share, [0.375, 0.75])
    assert path.membership == 1.0


def test_a_change_without_parts_is_divided_by_the_weights():
    # The row lies at the split's center, on the plane, and goes right. There its
    # parts -0.125 and 0.5 lead to 1.125; a fifth of what is cut off is the first's.
    explanation = explain_rows(make_hand_made_model(), np.array([[0.5, -1.0]]))
    assert_allclose(explanation.contribution[0, 1], [0.25 - 0.125 - 0.025, 0.125 + 0.5 - 0.1])


def test_parts_that_would_cancel_to_nothing_still_add_up():
    far = np.array([[1e150, 1e150], [1e9, 1e8], [-1e12, -1e13]])
    explanation = explain_rows(make_hand_made_model(), far)
    total = explanation.base + explanation.contribution.sum(axis=-1)
    assert_allclose(total, explanation.vote, rtol=0, atol=1e-9)


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
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    holes[3] = np.nan
    yield "missing", LHTClassifier(max_depth=4).fit(holes, many, weight), holes
    yield "missing forest", LHForestClassifier(**settings).fit(holes, y), holes
    yield "forest", LHForestClassifier(**settings).fit(X, many, weight), X
    yield "paper", LHForestClassifier(preset="paper", beta=0.5, **settings).fit(X, y), X
    margin = LHForestClassifier(voting="margin", max_depth=3, **settings)
    yield "margin", margin.fit(X, many), X


@pytest.mark.parametrize(("model", "X"), [
    pytest.param(model, X, id=name) for name, model, X in make_models()
])  # fmt: skip
def test_contributions_are_the_references_and_add_up(model, X):
    explanation = explain_rows(model, X[:40])
    base, total, vote = explain_reference.explain(model, X[:40].astype(float))
    assert_allclose(explanation.base, base, rtol=0, atol=1e-12)
    assert_allclose(explanation.contribution, total, rtol=0, atol=1e-9)
    assert_allclose(explanation.vote, vote, rtol=0, atol=1e-9)
    summed = explanation.base + explanation.contribution.sum(axis=-1)
    assert_allclose(summed, explanation.vote, rtol=0, atol=1e-9)
    if getattr(model, "voting", "membership") == "membership":
        sums = model.forest_.vote(np.ascontiguousarray(X[:40]), n_classes=model.n_classes_)[0]
        members = len(model.forest_) // len(set(model.forest_.target))
        assert_allclose(explanation.vote[:, -1], sums[:, -1] / members, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("model", "X"), [
    pytest.param(model, X, id=name) for name, model, X in make_models()
])  # fmt: skip
def test_paths_add_up_to_projections_and_memberships(model, X):
    X = X[:15]
    explanation = explain_rows(model, X, paths=True)
    leaf = model.apply(X)
    Z = (X.astype(float) - model.forest_.column_mean) / model.forest_.column_deviation
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
            unclipped = path.leaf_contribution.sum() + path.share[-1]
            assert_allclose(np.clip(unclipped, 0, 1), path.membership, rtol=0, atol=1e-9)
    for k in range(model.n_classes_):
        own = [
            [path.membership for path in paths if path.target == model.classes_[k]]
            for paths in explanation.paths
        ]
        if own[0]:
            assert_allclose(np.mean(own, axis=1), explanation.vote[:, k], rtol=0, atol=1e-9)


def test_a_missing_value_contributes_nothing_beside_values_that_are_there():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 5))
    y = (X.sum(axis=1) > 0).astype(int) + (X[:, 0] > 1)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    for model in (LHTClassifier(), LHForestClassifier(preset="paper", beta=0.0, n_estimators=3)):
        model.fit(X, y)  # nearly every split weighs all columns
        explanation = explain_rows(model, X, paths=True)
        is_missing = np.isnan(X)
        for i, paths in enumerate(explanation.paths):
            has_parts = all(
                len(path.node) == 0 or path.contribution.any(axis=1).all() for path in paths
            )
            if has_parts:
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


def test_proline_leads_the_first_split_of_class_0(wine):
    table = split_table(LHTClassifier().fit(*wine))
    first = table[(table["target"] == 0) & (table["node"] == 0)]
    assert first["feature_1"].item() == "proline"
    assert first["weight_1"].item() == 1.0


def test_split_table_lists_every_split_with_both_units(wine):
    X, y = wine
    model = LHForestClassifier(n_estimators=3, random_state=0).fit(X, y)
    table = split_table(model, n_features=99)
    assert len(table) == np.count_nonzero(model.forest_.left >= 0)
    assert_array_equal(table["member"], table["tree"] // 3)
    for _, row in table.iloc[::7].iterrows():
        tree = model.trees_[row["tree"]]
        feature, weight, *_ = tree.terms(row["node"])
        names = [row[f"feature_{k}"] for k in range(1, len(feature) + 1)]
        assert sorted(names) == sorted(X.columns[feature])
        sizes = np.abs([row[f"weight_{k}"] for k in range(1, len(feature) + 1)])
        assert np.all(np.diff(sizes) <= 0)
        raw = [row[f"raw_weight_{k}"] for k in range(1, len(feature) + 1)]
        score = X[names].to_numpy() @ raw
        Z = (X.to_numpy() - model.forest_.column_mean) / model.forest_.column_deviation
        expected = Z[:, feature] @ weight - row["threshold"]
        assert_allclose(score - row["threshold_raw"], expected, rtol=0, atol=1e-8)
        assert row["target"] == model.classes_[tree.target]


def test_split_table_needs_no_pandas(monkeypatch, wine):
    X, y = wine
    model = LHTClassifier().fit(X.to_numpy(), y)
    frame = split_table(model)
    plain_import = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return plain_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    columns = split_table(model)
    assert isinstance(columns, dict)
    assert list(columns) == list(frame.columns)
    assert_array_equal(columns["threshold_raw"], frame["threshold_raw"])


def test_a_split_view_shows_the_training_rows_of_each_split(wine):
    X, y = wine
    model = LHTClassifier(gamma=5).fit(X, y)
    for tree in model.trees_:
        for node in np.flatnonzero(tree.left >= 0):
            view = split_view(model, tree.number, node, X, y)
            target, rest = view.projection[view.is_target], view.projection[~view.is_target]
            extremes = [target.min(), target.max(), rest.min(), rest.max()]
            assert_array_equal(view.extremes, extremes)
            assert len(view.row) == view.n_samples == tree.n_samples[node]
            assert_array_equal(view.is_target, y[view.row] == view.target)
            assert_array_equal(view.is_right, view.projection >= view.threshold)
            pure = [len(set(view.is_target[view.is_right == side])) == 1 for side in (False, True)]
            names = {(True, True): "both", (True, False): "left", (False, True): "right"}
            assert view.pure_side == names.get(tuple(pure), "none")
            assert np.count_nonzero(view.is_right) == tree.n_samples[tree.left[node] + 1]


@pytest.mark.parametrize(("extremes", "side"), [
    ([3, 9, 0, 2], "both"), ([3, 9, 0, 4], "left"), ([1, 9, 0, 2], "right"),
    ([1, 9, 0, 4], "none"), ([1, 3, 0, 5], "none"), ([0, 5, 1, 3], "none"),
])  # fmt: skip
def test_a_side_is_pure_if_only_one_class_reaches_it(extremes, side):
    # The threshold is 3; a projection of 3 lies on the right.
    assert find_pure_side(3.0, np.array(extremes, dtype=float)) == side


def test_a_projection_on_the_plane_goes_right_as_in_prediction():
    X = np.array([[0.5, -1.0], [0.5 - 1e-9, -1.0]])
    model = make_hand_made_model()
    view = split_view(model, 0, 0, X, ["yes", "no"])
    assert view.projection[0] == view.threshold
    assert_array_equal(view.is_right, [True, False])
    assert_array_equal(model.apply(X)[:, 0], [2, 1])


def test_class_importances_are_those_of_the_classes_trees(wine):
    X, y = wine
    model = LHForestClassifier(n_estimators=3, random_state=0).fit(X, y)
    importance = class_importances(model)
    assert importance.shape == (3, 13)
    assert_allclose(importance.sum(axis=1), 1)
    expected = np.mean([tree.find_importances() for tree in model.trees_[1::3]], axis=0)
    assert_allclose(importance[1], expected)
    assert_allclose(importance.mean(axis=0), model.feature_importances_)
    two = LHTClassifier().fit(X, y == 1)
    assert_array_equal(*class_importances(two))
    assert not class_importances(LHTClassifier(max_depth=0).fit(X, y)).any()


def test_interactions_count_splits_that_weigh_both(wine):
    X, y = wine
    model = LHTClassifier(beta=0.6).fit(X, y)
    table = interactions(model)
    assert_allclose(table["strength"].sum(), 1)
    assert np.all(np.diff(table["strength"]) <= 0)
    splits = [(tree, node) for tree in model.trees_ for node in np.flatnonzero(tree.left >= 0)]
    columns = [set(X.columns[tree.terms(node)[0]]) for tree, node in splits]
    strength = []
    for _, row in table.iterrows():
        pair = {row["feature_1"], row["feature_2"]}
        assert row["n_splits"] == sum(pair <= named for named in columns)
        total = 0.0
        for tree, node in splits:
            feature, weight, _, deviation = tree.terms(node)
            size = dict(zip(X.columns[feature], np.abs(weight) * deviation, strict=True))
            if pair <= set(size):
                parts = [size[name] / sum(size.values()) for name in pair]
                total += np.prod(parts) * tree.weight_sum[node] / tree.weight_sum[0]
        strength.append(total)
    assert_allclose(table["strength"], np.array(strength) / sum(strength))
    assert len(interactions(model, n_pairs=2)) == 2


def test_a_model_of_single_columns_has_no_interactions(wine):
    assert len(interactions(LHTClassifier(beta=1.0).fit(*wine))) == 0


def test_classifiers_do_not_import_explanations():
    code = "import sys, lhtree; print([m for m in sys.modules if m.startswith('lhtree.ex')])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert run.stdout.strip() == "[]"


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


@pytest.mark.parametrize("ask", [
    lambda model, X, y: split_table(model),
    lambda model, X, y: explain_rows(model, X),
    lambda model, X, y: split_view(model, 0, 0, X, y),
    lambda model, X, y: class_importances(model),
    lambda model, X, y: interactions(model),
])  # fmt: skip
def test_only_fitted_models_are_explained(ask, wine):
    with pytest.raises(NotFittedError, match="not fitted"):
        ask(LHTClassifier(), *wine)
    with pytest.raises(TypeError, match="must be a fitted LHTClassifier or LHForest"):
        ask("model", *wine)


@pytest.mark.parametrize(("ask", "message"), [
    (lambda m, X, y: split_table(m, n_features=0), "n_features must be an integer from 1"),
    (lambda m, X, y: split_table(m, n_features=2.5), "n_features must be an integer"),
    (lambda m, X, y: interactions(m, n_pairs=-1), "n_pairs must be an integer from 1"),
    (lambda m, X, y: explain_rows(m, X, paths="yes"), "paths must be True or False, got 'yes'"),
    (lambda m, X, y: explain_rows(m, X[["ash"]]), "feature names"),
    (lambda m, X, y: explain_rows(m, X[:0]), "0 sample"),
    (lambda m, X, y: split_view(m, 3, 0, X, y), "tree must be an integer from 0 to 2, got 3"),
    (lambda m, X, y: split_view(m, -1, 0, X, y), "tree must be an integer from 0 to 2, got -1"),
    (lambda m, X, y: split_view(m, 0, 99, X, y), "node must be an integer from 0 to "),
    (lambda m, X, y: split_view(m, 0, 1, X, y), "node=1 of tree 0 is a leaf; its splits are 0, 2"),
    (lambda m, X, y: split_view(m, 0, 0, X, y[:-1]), "y must have one label for each of the 178"),
    (lambda m, X, y: split_view(m, 0, 0, X, y + 1), "y has 3, but the model's classes are 0, 1"),
])  # fmt: skip
def test_bad_input_gets_a_sentence(ask, message, wine):
    model = LHTClassifier().fit(*wine)
    with pytest.raises(ValueError, match=message):
        ask(model, *wine)


def test_a_tree_of_one_leaf_says_that_it_has_no_split(wine):
    with pytest.raises(ValueError, match="node=0 of tree 0 is a leaf; it has no split"):
        split_view(LHTClassifier(max_depth=0).fit(*wine), 0, 0, *wine)


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
    assert_allclose(total, explanation.vote, rtol=0, atol=1e-9)
    assert split_table(model)["feature_1"].isin(explanation.column_names).all()
    answer = nearest_counterfactual(model, X.iloc[[0]])
    assert answer.found
    assert answer.is_minimal
    assert answer.x["colour"].item() == X["colour"].iloc[0]
    assert np.isnan(answer.change[1])
    assert model.predict(answer.x)[0] == answer.prediction
    with pytest.raises(ValueError, match="features has 'colour', which holds categories"):
        nearest_counterfactual(model, X.iloc[[0]], features=["colour"])
