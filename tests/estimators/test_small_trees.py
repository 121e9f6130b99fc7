"""Small trees: least rows of a leaf, most leaves, and pruning."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.tree import DecisionTreeClassifier

import reference
import tables
from forests import check_trees
from growing import assert_same_tree, grow, grow_reference
from lhtree import LHForestClassifier, LHTClassifier, _core
from lhtree.model.ensemble import Ensemble
from preconditions import Precondition

# Contrasts other than "mean" round: their hyperplanes are compared elsewhere.
ALL_PARAMS = st.one_of(
    tables.params,
    tables.candidate_params.map(lambda params: replace(params, contrast="mean")),
)


def list_cuts(tree):
    """Return strength and impurity after each cut of a reference tree's weakest link."""
    return reference.cut_weakest_links(tree, np.inf)[1]


def test_pruned_trees_are_the_reference_bit_for_bit():
    has_splits = Precondition()

    @settings(max_examples=100)
    @given(tables.integer_tables(), ALL_PARAMS, st.data())
    def compare(table, params, data):
        Z, is_positive = table
        weight = tables.make_weight("integer", len(Z))
        strength = [cut[0] for cut in list_cuts(grow_reference(Z, is_positive, weight, params))]
        between = [(a + b) / 2 for a, b in pairwise(strength) if b - a > 1e-9]
        has_splits.assume(between)
        ccp_alpha = data.draw(st.sampled_from([*between, strength[-1] + 1e-9]))
        params = replace(params, ccp_alpha=ccp_alpha)
        native = grow(Z, is_positive, weight, params)
        assert_same_tree(native, grow_reference(Z, is_positive, weight, params), exact=True)

    compare()
    has_splits.demand(n_held=100, fraction=0.2)


def test_weak_links_are_those_of_the_reference():
    has_cuts = Precondition()

    @given(tables.integer_tables(max_rows=60, max_columns=3))
    def compare(table):
        Z, is_positive = table
        plain = grow_reference(Z, is_positive, None, reference.Params())
        risk = 2 * reference.weigh_impurity(plain) / plain.weight_sum[0]
        strength, gain = _core.list_pruning_links(plain.left.astype(np.int32), risk)
        cuts = list_cuts(plain)
        has_cuts.assume(len(cuts) > 1)
        # One cut may swallow another of equal strength, or come after it: compare the levels.
        ours = np.sort(strength[np.isfinite(strength)])
        theirs = np.array([cut[0] for cut in cuts[1:]])
        for level in theirs:
            assert np.abs(ours - level).min(initial=np.inf) < 1e-9
            impurity = [cut[1] for cut in cuts if cut[0] <= level + 1e-9][-1]
            assert_allclose(cuts[0][1] + gain[strength <= level + 1e-9].sum(), impurity, atol=1e-9)
        for level in ours:
            assert np.abs(theirs - level).min(initial=np.inf) < 1e-9

    compare()
    has_cuts.demand(n_held=100, fraction=0.2)


@pytest.mark.parametrize("seed", range(3))
def test_weak_links_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=400) > 1).astype(int)
    path = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X, y)
    cart = DecisionTreeClassifier(random_state=0).fit(X, y).tree_
    order = [0]  # breadth-first, children side by side
    for node in order:
        if cart.children_left[node] >= 0:
            order += [cart.children_left[node], cart.children_right[node]]
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    child = cart.children_left[order]
    left = np.where(child < 0, -1, place[child]).astype(np.int32)
    risk = (cart.impurity * cart.weighted_n_node_samples / 400)[order]
    strength, gain = _core.list_pruning_links(left, risk)
    assert_allclose(
        np.unique(strength[np.isfinite(strength)].round(12)),
        np.unique(path.ccp_alphas[1:].round(12)),
    )
    assert_allclose(gain[np.isfinite(strength)].sum(), path.impurities[-1])


def test_links_of_a_hand_made_tree_are_cut_in_order():
    # 0 -> (1, 2), 1 -> (3, 4), 2 -> (5, 6); the links have the gains 0.1, 0.02 and 0.05.
    left = np.array([1, 3, 5, -1, -1, -1, -1], dtype=np.int32)
    risk = np.array([0.5, 0.2, 0.2, 0.1, 0.08, 0.1, 0.05])
    strength, gain = _core.list_pruning_links(left, risk)
    assert_allclose(strength, [0.1, 0.02, 0.05, *[np.inf] * 4])
    assert_allclose(gain[:3], [0.1, 0.02, 0.05])


def test_a_link_stronger_than_its_parents_goes_with_it():
    # Cutting at the root costs 0.13 for two leaves, less per leaf than cutting below it.
    left = np.array([1, 3, -1, -1, -1], dtype=np.int32)
    risk = np.array([0.43, 0.4, 0.0, 0.2, 0.1])
    strength, gain = _core.list_pruning_links(left, risk)
    assert_allclose(strength, [0.065, *[np.inf] * 4])
    assert_allclose(gain[0], 0.13)


def test_a_chain_of_many_links_is_cut_in_moments():
    n_splits = 200_000
    left = np.full(2 * n_splits + 1, -1, dtype=np.int32)
    left[0] = 1
    left[1 : 2 * n_splits - 1 : 2] = np.arange(3, 2 * n_splits + 1, 2)
    risk = np.zeros(2 * n_splits + 1)
    risk[0], risk[1::2] = 1.0, np.linspace(1, 0, n_splits + 1)[1:]
    strength, gain = _core.list_pruning_links(left, risk)
    assert_allclose(gain[np.isfinite(strength)].sum(), 1.0)


@pytest.mark.parametrize("left", [[5, -1, -1], [0, -1, -1], [2, -1, -1]])
def test_links_of_arrays_that_are_not_a_tree_are_refused(left):
    with pytest.raises(ValueError, match="a child is out of range"):
        _core.list_pruning_links(np.array(left, dtype=np.int32), np.ones(3))


MODELS = [
    LHTClassifier(),
    LHTClassifier(contrast="standardized", criterion="gini"),
    LHForestClassifier(n_estimators=4, random_state=0),
    LHForestClassifier(n_estimators=4, contrast="standardized", random_state=0),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("least", [7, 0.05])
def test_no_leaf_is_smaller_than_allowed(model, least):
    X, y = load_breast_cancer(return_X_y=True)
    model = clone(model).set_params(min_samples_leaf=least).fit(X, y)
    check_trees(model.forest_)
    n_least = 7 if least == 7 else np.ceil(0.05 * len(X))
    forest = model.forest_
    n_rows = forest.weight if isinstance(forest, Ensemble) else forest.n_samples
    n_leaf = n_rows[forest.left < 0]
    assert n_least <= n_leaf.min() < 3 * n_least
    assert model.score(X, y) > 0.9


def test_rows_of_weight_count_in_leaves_like_copies():
    X, y = load_wine(return_X_y=True)
    X = X.round()  # sums are exact, so that the order of copies is of no account
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    model = LHTClassifier(min_samples_leaf=9, max_leaf_nodes=4, ccp_alpha=0.01, standardize=False)
    light = model.fit(X, y, weight).predict_proba(X)
    heavy = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).predict_proba(X)
    assert_allclose(light, heavy, atol=1e-12)
    model = LHForestClassifier(3, max_samples=None, min_samples_leaf=9, random_state=0)
    model.set_params(max_leaf_nodes=4, ccp_alpha=0.01)
    light = model.fit(X, y, weight).predict_proba(X)
    heavy = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).predict_proba(X)
    assert_array_equal(light, heavy)


def test_pruning_forests_cuts_what_gains_least():
    X, y = load_breast_cancer(return_X_y=True)
    n_leaves = []
    for ccp_alpha in (0.0, 0.003, 0.01, 0.1, 1.0):
        model = LHForestClassifier(4, ccp_alpha=ccp_alpha, random_state=0).fit(X, y)
        n_leaves.append(model.get_n_leaves())
        if ccp_alpha < 1:
            assert model.score(X, y) > 0.9
    assert n_leaves == sorted(n_leaves, reverse=True)
    assert n_leaves[0] > n_leaves[1] > n_leaves[2] > n_leaves[-1] == 4


@pytest.mark.parametrize("model", MODELS)
def test_trees_have_at_most_the_leaves_allowed(model):
    X, y = load_breast_cancer(return_X_y=True)
    model = clone(model)
    full = [tree.n_leaves for tree in model.fit(X, y).trees_]
    for most in (2, 3, 5, 10**30):
        model.set_params(max_leaf_nodes=most).fit(X, y)
        check_trees(model.forest_)
        assert [tree.n_leaves for tree in model.trees_] == [min(n, most) for n in full]


@pytest.mark.parametrize("model", MODELS[:2])  # all rows grow their trees
@pytest.mark.parametrize("most", [2, 3, 5])
def test_training_rows_reach_the_leaves_of_small_trees(model, most):
    X, y = load_breast_cancer(return_X_y=True)
    model = clone(model).set_params(max_leaf_nodes=most).fit(X, y)
    (tree,) = model.trees_
    count = np.bincount(model.apply(X)[:, 0], minlength=tree.n_nodes)
    assert_array_equal(count[tree.left < 0], tree.n_samples[tree.left < 0])


def test_the_pruning_path_leads_from_the_full_trees_to_single_leaves():
    X, y = load_wine(return_X_y=True)
    model = LHTClassifier(criterion="gini", contrast="standardized")
    path = model.cost_complexity_pruning_path(X, y)
    assert path.ccp_alphas[0] == 0
    assert np.all(np.diff(path.ccp_alphas) > 0)
    assert np.all(np.diff(path.impurities) >= -1e-12)
    n_leaves = []
    for ccp_alpha, impurity in zip(path.ccp_alphas, path.impurities, strict=True):
        model.set_params(ccp_alpha=ccp_alpha * (1 + 1e-9)).fit(X, y)
        n_leaves.append(model.get_n_leaves())
        left = [
            2 * np.sum((t.value * (1 - t.value) * t.weight_sum)[t.left < 0]) / len(X)
            for t in model.trees_
        ]
        assert_allclose(np.mean(left), impurity, atol=1e-12)
    assert n_leaves[-1] == 3  # one leaf for each class
    assert np.all(np.diff(n_leaves) < 0)


def test_pruned_leaves_output_their_line():
    X, y = load_breast_cancer(return_X_y=True)
    stump = LHTClassifier(ccp_alpha=1.0).fit(X, y)
    plain = LHTClassifier(max_depth=0).fit(X, y)
    assert_array_equal(stump.predict_proba(X), plain.predict_proba(X))
    assert stump.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("min_samples_leaf", 0, ValueError),
        ("min_samples_leaf", 1.0, ValueError),
        ("min_samples_leaf", "2", TypeError),
        ("max_leaf_nodes", 1, ValueError),
        ("max_leaf_nodes", 2.5, TypeError),
        ("ccp_alpha", -0.1, ValueError),
        ("ccp_alpha", None, TypeError),
    ],
)
def test_limits_of_small_trees_are_checked(name, value, error):
    X, y = load_wine(return_X_y=True)
    with pytest.raises(error, match=f"^{name} must be"):
        LHTClassifier(**{name: value}).fit(X, y)
