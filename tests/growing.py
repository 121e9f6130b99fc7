"""Growing one tree natively and by the reference, and comparing the two."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import reference
from lhtree import check_forest
from lhtree.model.forest import (
    CONTRASTS,
    NO_MAX_DEPTH,
    THRESHOLDS,
    Plan,
    finish_forest,
    grow_trees,
)


def make_plan(rules, shape, **changes):
    """Return the plan of one tree for class 1 on all rows."""
    n_rows, n_columns = shape
    is_dense = (
        not rules.axes
        and rules.n_planes == 1
        and rules.contrast != "fisher"
        and (rules.n_columns or n_columns) >= n_columns
    )
    plan = Plan(
        n_classes=2,
        target=(1,),
        beta=(rules.beta,),
        n_draws=n_rows,
        alpha=rules.alpha,
        gamma=rules.gamma,
        min_samples_split=rules.min_samples_split,
        max_depth=NO_MAX_DEPTH if rules.max_depth is None else rules.max_depth,
        min_weight_fraction_leaf=rules.min_weight_fraction_leaf,
        min_samples_leaf=rules.min_samples_leaf,
        max_leaf_nodes=rules.max_leaf_nodes or 0,
        ccp_alpha=rules.ccp_alpha,
        contrast=CONTRASTS.index(rules.contrast),
        cut=THRESHOLDS.index(rules.threshold),
        axes=rules.axes,
        n_planes=rules.n_planes,
        n_columns=rules.n_columns or 0,
        by_columns=not is_dense,
    )
    return replace(plan, **changes)


def grow_from(Z, code, weight, plan, **settings):
    """Grow a forest from rows in the units of the trees; check it."""
    m = Z.shape[1]
    table = np.ascontiguousarray(Z.T) if plan.by_columns else Z
    grown = grow_trees(table, code, weight, plan, **settings)
    forest = finish_forest(grown, (np.zeros(m), np.ones(m)))
    check_forest(forest)
    return forest


def grow(Z, is_target, weight, rules):
    """Grow one native tree."""
    return grow_from(Z, is_target.astype(np.int32), weight, make_plan(rules, Z.shape))[0]


def grow_reference(Z, is_target, weight, rules):
    """Grow one tree by the reference."""
    weight = np.ones(len(Z)) if weight is None else weight
    return reference.grow(Z, is_target, weight, rules, key=reference.tree_key(0, 0, 1))


def is_same_tree(a, b):
    """Whether two reference trees take the same decisions: structure, rows and columns."""
    return (
        np.array_equal(a.left, b.left)
        and np.array_equal(a.n_samples, b.n_samples)
        and all(np.array_equal(x, y) for x, y in zip(a.feature, b.feature, strict=True))
    )


def is_stable(plain, Z, is_target, weight, rules):
    """Whether rounding decides nothing.

    The reference must grow the same tree from rows in another order, and from columns in
    units that differ by a few roundings.
    """
    for seed in range(6):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(Z))
        unit = 1 + (seed > 2) * 1e-13 * rng.normal(size=Z.shape[1])
        other_weight = None if weight is None else weight[order]
        other = grow_reference(Z[order] * unit, is_target[order], other_weight, rules)
        if not is_same_tree(plain, other):
            return False
    return True


def assert_same_tree(native, plain, exact):
    """Demand the same decisions, to the bit where sums are exact."""
    compare = assert_array_equal if exact else lambda a, b: assert_allclose(a, b, rtol=1e-6)
    assert_array_equal(native.left, plain.left)
    assert_array_equal(native.n_samples, plain.n_samples)
    if exact:
        assert_array_equal(native.rule, plain.rule)
        assert_array_equal(native.extremes, plain.extremes)
    assert_allclose(native.share, plain.share, rtol=1e-12)
    assert_allclose(native.weight_sum, plain.weight_sum, rtol=1e-12)
    is_split = plain.left >= 0
    if exact:
        assert_array_equal(native.threshold[is_split], plain.threshold[is_split])
    for node in np.flatnonzero(is_split):  # a threshold at a mean may be nearly 0
        scale = np.abs(plain.extremes[node]).max()
        assert abs(native.threshold[node] - plain.threshold[node]) <= 1e-6 * scale
    for node in range(len(plain.left)):
        feature, weight, center, deviation = native.terms(node)
        assert_array_equal(feature, plain.feature[node])
        if is_split[node]:
            compare(weight, plain.weight[node])
        else:
            assert_allclose(weight, plain.weight[node], rtol=1e-6)
        spread = np.abs(plain.deviation[node])
        assert_allclose(center, plain.center[node], rtol=1e-12, atol=1e-9 * spread.max(initial=0))
        assert_allclose(deviation, spread, rtol=1e-6)
