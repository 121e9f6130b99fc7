"""What a boosted model consists of and relies on: splits, rules, importances, pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from boosted import CLASSIFIERS, COLORS, FORESTS, NAMES, fit_boosted, get_scores
from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.explain import class_importances, interactions, rules, split_table
from lhtree.explain.boosted_splits import shorten_hyperplanes
from lhtree.explain.wording import Condition, Membership, Presence

COMPARE = {"<": np.less, ">=": np.greater_equal}
WITH_TREES = [name for name in NAMES if name not in ("one class", "no tree")]


def holds(condition, X):
    """Return for which rows a condition holds, given what is said of missing values."""
    if isinstance(condition, Presence):
        return X[condition.feature].isna().to_numpy() == condition.is_missing
    if isinstance(condition, Membership):
        text = X[condition.feature].map(lambda each: each if each in COLORS[:5] else "missing")
        return text.isin(condition.values).to_numpy() == condition.is_in
    assert isinstance(condition, Condition)
    score = sum(term.weight * X[term.feature].to_numpy() for term in condition.terms)
    with np.errstate(invalid="ignore"):
        fulfils = COMPARE[condition.comparison](score, condition.threshold)
    return np.where(np.isnan(score), condition.or_missing, fulfils)


def get_training_rows(X):
    """Return rows within the range of training, without gaps in columns of numbers."""
    return X.iloc[:150].dropna(subset=list("abcde"))


@pytest.mark.parametrize("name", WITH_TREES)
def test_rules_are_the_model(name):
    model, X = fit_boosted(name)
    X = get_training_rows(X)
    listed = rules(model)
    n_fulfilled = np.zeros((len(X), len(model.forest_)), dtype=int)
    score = np.zeros((len(X), model.forest_.n_outputs))
    score += [value for _, value in listed.start] or 0  # a forest starts from nothing
    for rule in listed:
        fulfils = np.all([holds(each, X) for each in rule.conditions], axis=0)
        n_fulfilled[:, rule.tree] += fulfils
        score[fulfils] += rule.value
    assert len(listed) == model.get_n_leaves()
    assert_array_equal(n_fulfilled, 1)
    if name in FORESTS:
        score /= len(model.forest_)
    assert_allclose(score, get_scores(model, X), atol=1e-9)


def test_a_rule_holds_for_missing_values_where_its_leaf_takes_them():
    model, X = fit_boosted("single columns")
    X = X.dropna(subset=["a", "c", "e"])  # in training, these have no gaps
    score = np.full(len(X), rules(model).start[0][1])
    for rule in rules(model):
        score[np.all([holds(each, X) for each in rule.conditions], axis=0)] += rule.value[0]
    assert X.isna().to_numpy().any()
    assert_allclose(score, model.predict(X), atol=1e-9)


def test_rules_read_well():
    X = np.arange(10.0)[:, np.newaxis]
    kind = {"n_estimators": 1, "learning_rate": 1.0, "max_leaf_nodes": 2, "l2_regularization": 0.0}
    model = LHBoostRegressor(**kind).fit(X, np.where(X[:, 0] < 7, 1.0, 3.0))
    assert str(rules(model, X=X)) == (
        "prediction starts at 1.60\n"
        "Tree 0: adds to the prediction\n"
        "  if x0 < 6.50 then prediction -0.60 (70.0% of the rows)\n"
        "  if x0 >= 6.50 then prediction +1.40 (30.0% of the rows)\n"
        "R2 of the rules against the model: 1.0000."
    )
    model = LHBoostClassifier(**kind).fit(X, np.where(X[:, 0] < 7, "no", "yes"))
    assert str(rules(model, X=X)) == (
        "log-odds of yes starts at -0.85\n"
        "Tree 0: adds to the log-odds of yes\n"
        "  if x0 < 6.50 then log-odds of yes -1.43 (70.0% of the rows)\n"
        "  if x0 >= 6.50 then log-odds of yes +3.33 (30.0% of the rows)\n"
        "The rules agree with the model on 100.00% of the rows."
    )
    model = LHBoostClassifier(n_estimators=1).fit(X, np.arange(10) // 2)
    assert "2 smaller changes (" in str(rules(model)[0])
    assert str(rules(model)[0]).count("score of ") == 3


@pytest.mark.parametrize("name", ["numbers", "three classes"])
def test_weak_terms_of_hyperplanes_are_dropped_and_counted(name):
    model, X = fit_boosted(name)
    ensemble = model.forest_
    short = shorten_hyperplanes(ensemble, 0.5)
    n_kept = 0
    for k in range(len(ensemble.cut)):
        own, cut = slice(*ensemble.term_start[k : k + 2]), slice(*short.term_start[k : k + 2])
        strength = np.abs(ensemble.coefficient[own].astype(int))
        strongest = np.argsort(-strength, kind="stable")[:2]
        kept = np.union1d(np.flatnonzero(strength >= 0.5 * strength.max()), strongest)
        assert_array_equal(short.feature[cut], ensemble.feature[own][kept])
        assert_array_equal(short.coefficient[cut], ensemble.coefficient[own][kept])
        at_fill = [
            int(each.coefficient[part].astype(int) @ each.fill[part]) - int(each.cut[k])
            for each, part in ((ensemble, own), (short, cut))
        ]
        assert at_fill[0] == at_fill[1]  # a row without values takes the same side
        n_kept += len(kept)
    listed = rules(model, min_weight=0.5, X=X)
    assert (listed.n_terms, listed.n_dropped) == (
        len(ensemble.feature),
        len(ensemble.feature) - n_kept,
    )
    assert listed.n_dropped > 0
    assert 0.5 < listed.agreement < 1
    assert shorten_hyperplanes(ensemble, 0.0) is ensemble


@pytest.mark.parametrize("name", WITH_TREES)
def test_the_table_of_splits_is_the_model(name):
    model, X = fit_boosted(name)
    X = get_training_rows(X)
    table = split_table(model, n_features=6)
    ensemble = model.forest_
    assert len(table) == np.count_nonzero(ensemble.left >= 0)
    path, start = model.decision_path(X)
    for row in table.iloc[:40].to_dict("records"):
        tree = ensemble[row["tree"]]
        passes = path[:, start[row["tree"]] + row["node"]].toarray().ravel() > 0
        goes_left = path[:, start[row["tree"]] + int(tree.left[row["node"]])].toarray().ravel()
        assert row["kind"] in ("number", "category", "hyperplane")
        if row["kind"] != "category":
            listed = [k for k in range(1, 7) if isinstance(row[f"feature_{k}"], str)]
            score = sum(row[f"raw_weight_{k}"] * X[row[f"feature_{k}"]] for k in listed)
            assert_array_equal((score < row["threshold_raw"])[passes], goes_left[passes] > 0)
        assert row["fraction"] == tree.fraction[row["node"]]
    labels = getattr(model, "classes_", range(ensemble.n_outputs))
    names = ["value"] if ensemble.n_outputs == 1 else [f"value_{k}" for k in labels]
    values = [tree.prediction if name in FORESTS else tree.value for tree in ensemble]
    expected = np.concatenate(values)[ensemble.left >= 0]
    assert_array_equal(table[names].to_numpy(), expected)


def test_the_table_says_where_missing_values_go():
    model, X = fit_boosted("numbers")
    table = split_table(model)
    assert set(table["missing"]) == {"left", "right", "fill"}
    assert set(table.loc[table["missing"] == "fill", "kind"]) == {"hyperplane"}
    path, start = model.decision_path(X)
    missing = X.isna() | ~X.isin(COLORS) & (X.columns == "color")
    for row in table[table["kind"] != "hyperplane"].to_dict("records"):
        child = model.trees_[row["tree"]].left[row["node"]] + (row["missing"] == "right")
        passes = path[:, start[row["tree"]] + row["node"]].toarray().ravel() > 0
        arrives = path[:, start[row["tree"]] + child].toarray().ravel() > 0
        assert arrives[passes & missing[row["feature_1"]].to_numpy()].all()


@pytest.mark.parametrize("name", [name for name in WITH_TREES if name in CLASSIFIERS])
def test_class_importances_are_mean_changes_of_scores(name):
    model, _ = fit_boosted(name)
    ensemble = model.forest_
    expected = np.zeros((ensemble.n_outputs, ensemble.n_features))
    for tree in ensemble:
        for node in np.flatnonzero(tree.left >= 0):
            split, change = tree.split(node), 0
            for child in (tree.left[node], tree.left[node] + 1):
                change = change + tree.fraction[child] * np.abs(
                    tree.value[child] - tree.value[node]
                )
            if hasattr(split, "column"):
                expected[:, split.column] += change
            else:
                size = np.abs(split.coefficient)
                expected[:, split.feature] += np.outer(change, size / size.sum())
    expected /= expected.sum(axis=1, keepdims=True)
    importance = class_importances(model)
    assert importance.shape == (len(model.classes_), ensemble.n_features)
    assert_allclose(importance, np.broadcast_to(expected, importance.shape), rtol=1e-9)


def test_pairs_are_counted_where_a_hyperplane_has_both():
    model, _ = fit_boosted("numbers")
    table = interactions(model)
    planes = [
        set(tree.split(node).feature.tolist())
        for tree in model.forest_
        for node in np.flatnonzero((tree.left >= 0) & (tree.column < 0))
    ]
    names = model.column_names_
    for row in table.to_dict("records"):
        pair = {names.index(row["feature_1"]), names.index(row["feature_2"])}
        assert row["n_splits"] == sum(pair <= plane for plane in planes)
    assert table["strength"].sum() == pytest.approx(1)
    assert len(interactions(fit_boosted("single columns")[0])) == 0
