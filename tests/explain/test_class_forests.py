"""Forests of classes with constant leaves: contributions, paths, splits, rules, importances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine

import explain_reference
from class_forests import KINDS, fit_class_forest, make_rows
from lhtree import LHForestClassifier, LHForestRegressor
from lhtree.explain import (
    class_importances,
    explain_rows,
    interactions,
    rules,
    split_table,
    split_view,
)
from lhtree.explain.model_view import view_model
from lhtree.explain.splits import compute_extremes, name_pure_side_of
from lhtree.explain.wording import Condition
from lhtree.model.ensemble_splits import CategorySplit, HyperplaneSplit, NumberSplit
from lhtree.model.prediction import MOST_EXTREME
from lhtree.model.votes import count_votes

MANY = ["two classes", "three classes"]


def walk(tree, row):
    """Return the nodes that a row passes, the leaf last, step by step."""
    nodes = [0]
    while tree.left[nodes[-1]] >= 0:
        _, child = explain_reference.split_boosted(tree.ensemble, tree, nodes[-1], row)
        nodes.append(int(child))
    return nodes


def compute_projection(tree, node, row, column_std):
    """Return projection minus threshold in standardised units, 0 where no number decides."""
    ensemble, split = tree.ensemble, tree.split(node)
    if isinstance(split, CategorySplit):
        return 0.0
    if isinstance(split, NumberSplit):
        if split.threshold == np.inf:
            return 0.0
        gap = row[split.column] - split.threshold
        gap = np.clip(gap / column_std[split.column], -MOST_EXTREME, MOST_EXTREME)
        return gap if np.isfinite(gap) else 0.0
    total = 0
    position = ensemble.index.position[tree.first_node + node]
    for term in range(*ensemble.term_start[position : position + 2].tolist()):
        j = int(ensemble.feature[term])
        is_missing = np.isnan(row[j])
        z = int(ensemble.fill[term])
        if not is_missing:
            z = explain_reference.place(ensemble.columns, j, row[j])
        total += int(ensemble.coefficient[term]) * z
    largest = np.abs(split.coefficient).max()
    return (total - int(ensemble.cut[position])) / largest / 2**20


@pytest.mark.parametrize("name", KINDS)
def test_contributions_equal_the_reference_and_add_up_to_the_votes(name):
    model, X = fit_class_forest(name)
    table = np.ascontiguousarray(model.encode_rows(X))
    expected = [explain_reference.explain_boosted(model.forest_, row) for row in table[:20]]
    assert model.forest_.divide(table[:20]).tolist() == expected
    explanation = explain_rows(model, X)
    summed = explanation.base + explanation.contribution.sum(axis=-1)
    assert_allclose(summed, explanation.score, rtol=0, atol=1e-12)
    vote = count_votes(model.forest_, table, n_classes=model.n_classes_)
    assert_allclose(explanation.score, vote, rtol=0, atol=1e-15)
    assert explanation.output_names == tuple(f"vote for {label}" for label in model.classes_)
    if name == "two classes":
        assert_array_equal(explanation.contribution[:, 0], -explanation.contribution[:, 1])


@pytest.mark.parametrize("name", KINDS)
def test_paths_are_those_of_a_walk_by_hand(name):
    model, X = fit_class_forest(name)
    explanation = explain_rows(model, X, paths=True)
    column_std = view_model(model).column_std
    leaf = model.apply(X)
    n_undecided = 0
    for i, (row, paths) in enumerate(zip(explanation.table, explanation.paths, strict=True)):
        for tree, path in zip(model.trees_, paths, strict=True):
            nodes = walk(tree, row)
            assert path.tree == tree.number
            assert [*path.node, path.leaf] == nodes
            assert path.leaf == leaf[i, tree.number]
            assert_array_equal(path.is_right, nodes[1:] != tree.left[nodes[:-1]])
            assert_array_equal(path.value, tree.prediction[nodes, 0])
            assert path.membership == path.value[-1]
            assert not path.leaf_contribution.any()
            given = path.contribution.sum(axis=1) + path.constant
            wanted = [compute_projection(tree, node, row, column_std) for node in path.node]
            assert_allclose(given, wanted, rtol=1e-9, atol=1e-9)
            is_decided = np.array(wanted) != 0
            assert_array_equal(path.is_right[is_decided], np.array(wanted)[is_decided] > 0)
            assert_array_equal(np.sign(path.distance), np.sign(given))
            assert not path.contribution[:, np.isnan(row)].any()
            n_undecided += int((~is_decided).sum())
    assert name == "one class" or n_undecided


@pytest.mark.parametrize("name", MANY)
def test_memberships_on_the_paths_are_the_votes(name):
    model, X = fit_class_forest(name)
    explanation = explain_rows(model, X, paths=True)
    for k, label in enumerate(model.classes_):
        own = [
            [path.membership for path in paths if path.positive_class == label]
            for paths in explanation.paths
        ]
        if own[0]:
            assert len(own[0]) == model.n_estimators_
            assert_allclose(np.mean(own, axis=1), explanation.score[:, k], rtol=0, atol=1e-12)
    named = {path.positive_class for path in explanation.paths[0]}
    assert named == set(model.classes_[1:] if name == "two classes" else model.classes_)


def test_the_distance_of_a_path_is_that_from_its_hyperplane():
    model, X = fit_class_forest("three classes")
    explanation = explain_rows(model, X.iloc[:5], paths=True)
    for paths in explanation.paths:
        for tree, path in zip(model.trees_, paths, strict=True):
            for step, node in enumerate(path.node):
                split = tree.split(node)
                if isinstance(split, HyperplaneSplit):
                    norm = np.linalg.norm(split.coefficient / np.abs(split.coefficient).max())
                    value = path.contribution[step].sum() + path.constant[step]
                    assert path.distance[step] == pytest.approx(value / norm)


def test_models_of_numbers_have_no_paths():
    X = np.arange(20.0)[:, np.newaxis]
    model = LHForestRegressor(2).fit(X, X[:, 0])
    with pytest.raises(TypeError, match="paths=True is for an LHTClassifier or LHForestClassif"):
        explain_rows(model, X, paths=True)


@pytest.mark.parametrize("name", MANY)
def test_the_table_names_estimators_and_classes(name):
    model, _ = fit_class_forest(name)
    table = split_table(model, n_features=3)
    n_trees = {"two classes": 1, "three classes": 3}[name]
    assert len(table) == np.count_nonzero(model.forest_.left >= 0)
    assert_array_equal(table["estimator"], table["tree"] // n_trees)
    first = int(name == "two classes")
    assert_array_equal(table["positive_class"], model.classes_[table["tree"] % n_trees + first])
    for _, row in table.iterrows():
        tree = model.trees_[row["tree"]]
        split = tree.split(row["node"])
        assert row["value"] == tree.prediction[row["node"], 0]
        if isinstance(split, HyperplaneSplit):
            assert abs(row["weight_1"]) == abs(row["raw_weight_1"]) == 1.0
            n = min(3, len(split.feature))
            weights = [row[f"weight_{k}"] for k in range(1, n + 1)]
            assert_allclose(weights, split.coefficient[:n] / abs(split.coefficient[0]))
            assert np.all(np.diff(np.abs(weights)) <= 0)


@pytest.mark.parametrize("name", MANY)
def test_a_split_view_shows_the_sides_of_a_walk(name):
    model, X = fit_class_forest(name)
    _, y = make_rows(KINDS[name])
    y = np.resize(y, len(X))
    table = model.encode_rows(X)
    kinds = set()
    for tree in model.trees_[:4]:
        nodes = [walk(tree, row) for row in table]
        for node in np.flatnonzero(tree.left >= 0):
            view = split_view(model, tree.number, node, X, y)
            split = tree.split(node)
            assert_array_equal(view.row, [i for i, each in enumerate(nodes) if node in each])
            is_right = [tree.left[node] + 1 in nodes[i] for i in view.row]
            assert_array_equal(view.is_right, is_right)
            has_number = ~np.isnan(view.projection)
            sides = view.projection[has_number] >= view.threshold
            assert_array_equal(sides, view.is_right[has_number])
            assert_array_equal(view.is_positive, y[view.row] == view.positive_class)
            assert view.value == tree.prediction[node, 0]
            assert view.n_samples == tree.ensemble.weight[tree.first_node + node]
            assert (view.threshold_kind, view.is_of_training) == ("gini", False)
            kinds.add(type(split))
            if isinstance(split, CategorySplit):
                assert np.isnan(view.threshold)
                assert not has_number.any()
            elif isinstance(split, NumberSplit) and np.isfinite(split.threshold):
                assert view.threshold == split.threshold
                value = table[view.row, split.column]
                shown = np.abs(value) < 1e150
                assert_allclose(view.projection[shown], value[shown])
                assert_array_equal(has_number, ~np.isnan(value))
    assert kinds == {CategorySplit, NumberSplit, HyperplaneSplit}


def test_projections_of_a_view_are_sums_of_raw_columns():
    X, y = load_wine(return_X_y=True)
    model = LHForestClassifier(5, random_state=0).fit(X, y)
    for tree in model.trees_:
        for node in np.flatnonzero(tree.left >= 0):
            view, split = split_view(model, tree.number, node, X, y), tree.split(node)
            if isinstance(split, HyperplaneSplit):
                expected = X[view.row][:, split.feature] @ split.weight
                unit = view_model(model).column_std[split.feature[0]]
                # Values are rounded to the grids of the columns.
                assert_allclose(view.projection, expected, rtol=0, atol=1e-5 * unit)
                assert view.threshold == split.threshold


def test_no_row_changes_sides_by_rounding_far_from_zero():
    rng = np.random.default_rng(0)
    X = 1e9 + 1e-6 * rng.normal(size=(400, 2))  # numbers are 1e-7 apart there
    y = (X - 1e9) @ [1.0, 0.7] > 0
    model = LHForestClassifier(20, random_state=0, axis_splits=False).fit(X, y)
    for tree in model.trees_:
        for node in np.flatnonzero(tree.left >= 0):
            view = split_view(model, tree.number, node, X, y)
            assert_array_equal(view.projection >= view.threshold, view.is_right)


def test_extremes_and_pure_sides_are_those_of_the_rows_shown():
    projection, is_positive = (
        np.array([3.0, np.nan, 1.0, 5.0]),
        np.array([True, False, True, True]),
    )
    extremes = compute_extremes(projection, is_positive)
    assert_array_equal(extremes, [1, 5, np.nan, np.nan])
    sides = {
        "both": [True, False, True, True],
        "left": [True, True, False, True],
        "none": [True, True, True, True],
    }
    for name, is_right in sides.items():
        assert name_pure_side_of(is_positive, np.array(is_right)) == name
    assert name_pure_side_of(is_positive, np.array([False, False, False, True])) == "right"


@pytest.mark.parametrize("name", MANY)
def test_rules_name_their_class_and_are_the_model(name):
    model, _ = fit_class_forest(name)
    X, _ = make_rows(KINDS[name])
    listed = rules(model, X=X)
    assert listed.agreement == 1.0
    assert len(listed) == model.get_n_leaves()
    view = view_model(model)
    for rule in listed:
        tree = model.trees_[rule.tree]
        label = model.classes_[view.get_class(tree)]
        assert rule.positive_class == label
        assert rule.task == f"votes for {label}, or against it"
        assert rule.value == (tree.prediction[rule.leaf, 0],)
        assert f"then vote for {label} " in str(rule)


def test_standardized_rules_have_the_weights_of_standardised_columns():
    model, _ = fit_class_forest("three classes")
    unit = dict(zip(model.column_names_, view_model(model).column_std, strict=True))
    for raw, scaled in zip(rules(model), rules(model, units="standardized"), strict=True):
        for one, other in zip(raw.conditions, scaled.conditions, strict=True):
            if not isinstance(one, Condition):
                assert one == other
                continue
            strongest = unit[one.terms[0].feature]
            assert other.threshold == pytest.approx(one.threshold / strongest)
            assert other.comparison == one.comparison
            for a, b in zip(one.terms, other.terms, strict=True):
                assert b.weight == pytest.approx(a.weight * unit[a.feature] / strongest)
            size = [abs(term.weight) for term in other.terms]
            assert size == sorted(size, reverse=True)
            assert size[0] == 1


@pytest.mark.parametrize("name", MANY)
def test_class_importances_count_the_changes_of_a_class_by_its_own_trees(name):
    model, _ = fit_class_forest(name)
    importance = class_importances(model)
    assert_allclose(importance.sum(axis=1), 1)
    first = int(name == "two classes")
    for k in range(first, model.n_classes_):
        expected = np.zeros(importance.shape[1])
        for tree in model.trees_[k - first :: model.n_classes_ - first]:
            for node in np.flatnonzero(tree.left >= 0):
                split, sides = tree.split(node), tree.left[node] + np.arange(2)
                step = np.abs(tree.prediction[sides, 0] - tree.prediction[node, 0])
                change = step @ tree.fraction[sides]
                if isinstance(split, HyperplaneSplit):
                    size = np.abs(split.coefficient)
                    expected[split.feature] += change * size / size.sum()
                else:
                    expected[split.column] += change
        assert_allclose(importance[k], expected / expected.sum())
    if first:
        assert_array_equal(*importance)


def test_interactions_are_those_of_hyperplanes():
    model, _ = fit_class_forest("three classes")
    table = interactions(model)
    assert table["strength"].sum() == pytest.approx(1)
    pairs = set(zip(table["feature_1"], table["feature_2"], strict=True))
    used = set()
    for tree in model.trees_:
        for node in np.flatnonzero(tree.left >= 0):
            if isinstance(split := tree.split(node), HyperplaneSplit):
                names = [model.column_names_[j] for j in sorted(split.feature)]
                used |= {(a, b) for i, a in enumerate(names) for b in names[i + 1 :]}
    assert pairs == used


def test_explanations_do_not_depend_on_threads():
    model, X = fit_class_forest("three classes")
    more = clone(model).set_params(n_jobs=3).fit(*make_rows(3))
    one, three = (explain_rows(each, X, paths=True) for each in (model, more))
    assert_array_equal(one.contribution, three.contribution)
    for own, other in zip(one.paths, three.paths, strict=True):
        for a, b in zip(own, other, strict=True):
            assert_array_equal(a.contribution, b.contribution)
