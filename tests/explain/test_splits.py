"""Splits as data: the table of all, and the view of one."""

import builtins

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hand_made import make_hand_made_model
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import (
    split_table,
    split_view,
)
from lhtree.explain.splits import name_pure_side


def test_split_table_of_a_hand_made_tree():
    table = split_table(make_hand_made_model(standardize=True), n_features=3)
    assert len(table) == 1
    row = {name: table[name][0] for name in table}
    assert row == {
        "tree": 0, "estimator": 0, "positive_class": "yes", "node": 0, "depth": 0, "n_samples": 8,
        "weight_sum": 8.0, "value": 0.375, "threshold_kind": "N3", "threshold": 1.0,
        # z_a - z_b / 2 = (a - 10) / 2 - (b - 20) / 8 < 1: a / 2 - b / 8 < 1 + 5 - 2.5
        "threshold_raw": 3.5,
        "feature_1": "x0", "weight_1": 1.0, "raw_weight_1": 0.5,
        "feature_2": "x1", "weight_2": -0.5, "raw_weight_2": -0.125,
    }  # fmt: skip


def test_proline_leads_the_first_split_of_class_0(wine):
    table = split_table(LHTClassifier().fit(*wine))
    first = table[(table["positive_class"] == 0) & (table["node"] == 0)]
    assert first["feature_1"].item() == "proline"
    assert first["weight_1"].item() == 1.0


def test_split_table_lists_every_split_with_both_units(wine):
    X, y = wine
    model = LHForestClassifier(n_estimators=3, preset="paper", random_state=0).fit(X, y)
    table = split_table(model, n_features=99)
    assert len(table) == np.count_nonzero(model.forest_.left >= 0)
    assert_array_equal(table["estimator"], table["tree"] // 3)
    for _, row in table.iloc[::7].iterrows():
        tree = model.trees_[row["tree"]]
        feature, weight, *_ = tree.terms(row["node"])
        names = [row[f"feature_{k}"] for k in range(1, len(feature) + 1)]
        assert sorted(names) == sorted(X.columns[feature])
        sizes = np.abs([row[f"weight_{k}"] for k in range(1, len(feature) + 1)])
        assert np.all(np.diff(sizes) <= 0)
        raw = [row[f"raw_weight_{k}"] for k in range(1, len(feature) + 1)]
        score = X[names].to_numpy() @ raw
        Z = (X.to_numpy() - model.forest_.column_mean) / model.forest_.column_std
        expected = Z[:, feature] @ weight - row["threshold"]
        assert_allclose(score - row["threshold_raw"], expected, rtol=0, atol=1e-8)
        assert row["positive_class"] == model.classes_[tree.positive_class]


def test_split_table_works_without_pandas(monkeypatch, wine):
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
            positive = view.projection[view.is_positive]
            negative = view.projection[~view.is_positive]
            extremes = [positive.min(), positive.max(), negative.min(), negative.max()]
            assert_array_equal(view.extremes, extremes)
            assert len(view.row) == view.n_samples == tree.n_samples[node]
            assert_array_equal(view.is_positive, y[view.row] == view.positive_class)
            assert_array_equal(view.is_right, view.projection >= view.threshold)
            is_pure = tuple(
                len(set(view.is_positive[view.is_right == side])) == 1 for side in (False, True)
            )
            names = {(True, True): "both", (True, False): "left", (False, True): "right"}
            assert view.pure_side == names.get(is_pure, "none")
            assert np.count_nonzero(view.is_right) == tree.n_samples[tree.left[node] + 1]


@pytest.mark.parametrize(("extremes", "side"), [
    ([3, 9, 0, 2], "both"), ([3, 9, 0, 4], "left"), ([1, 9, 0, 2], "right"),
    ([1, 9, 0, 4], "none"), ([1, 3, 0, 5], "none"), ([0, 5, 1, 3], "none"),
])  # fmt: skip
def test_a_side_is_pure_if_only_one_class_reaches_it(extremes, side):
    # The threshold is 3; a projection of 3 lies on the right.
    assert name_pure_side(3.0, np.array(extremes, dtype=float)) == side


def test_a_projection_on_the_hyperplane_goes_right_as_in_prediction():
    X = np.array([[0.5, -1.0], [0.5 - 1e-9, -1.0]])
    model = make_hand_made_model()
    view = split_view(model, 0, 0, X, ["yes", "no"])
    assert view.projection[0] == view.threshold
    assert_array_equal(view.is_right, [True, False])
    assert_array_equal(model.apply(X)[:, 0], [2, 1])


def test_a_tree_of_one_leaf_says_that_it_has_no_split(wine):
    with pytest.raises(ValueError, match="node=0 of tree 0 is a leaf; it has no split"):
        split_view(LHTClassifier(max_depth=0).fit(*wine), 0, 0, *wine)
