"""Growing one tree natively and by the reference, and comparing the two."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import reference
from lhtree import check_forest
from lhtree.data.table import Table, Target
from lhtree.model.building import finish_forest
from lhtree.training.local import grow_trees
from lhtree.training.plan import CONTRASTS, CRITERIA, NO_MAX_DEPTH, Plan


def make_plan(params, n_rows, **changes):
    """Return the plan of one tree for class 1 on all rows."""
    plan = Plan(
        n_classes=2,
        positive_class=(1,),
        beta=(params.beta,),
        n_draws=n_rows,
        alpha=params.alpha,
        gamma=params.gamma,
        min_samples_split=params.min_samples_split,
        max_depth=NO_MAX_DEPTH if params.max_depth is None else params.max_depth,
        min_weight_fraction_leaf=params.min_weight_fraction_leaf,
        min_samples_leaf=params.min_samples_leaf,
        max_leaf_nodes=params.max_leaf_nodes or 0,
        ccp_alpha=params.ccp_alpha,
        contrast=CONTRASTS.index(params.contrast),
        criterion=CRITERIA.index(params.criterion),
        axis_splits=params.axis_splits,
        n_hyperplanes=params.n_hyperplanes,
        max_features=params.n_columns or 0,
    )
    return replace(plan, **changes)


def grow_forest(Z, y_encoded, weight, plan, **settings):
    """Grow a forest from rows in the units of the trees; check it."""
    n_columns = Z.shape[1]
    target = Target(y_encoded, np.arange(plan.n_classes))
    grown = grow_trees(Table(Z, weight), target, plan, None, **settings)
    forest = finish_forest(grown, (np.zeros(n_columns), np.ones(n_columns)))
    check_forest(forest)
    return forest


def grow(Z, is_positive, weight, params):
    """Grow one native tree."""
    return grow_forest(Z, is_positive.astype(np.int32), weight, make_plan(params, len(Z)))[0]


def grow_reference(Z, is_positive, weight, params):
    """Grow one tree by the reference."""
    weight = np.ones(len(Z)) if weight is None else weight
    return reference.grow(Z, is_positive, weight, params, key=reference.tree_key(0, 0, 1))


def read_tree(tree):
    """Return a native tree in the form of the reference, which can then predict by it."""
    terms = [tree.terms(node) for node in range(tree.n_nodes)]
    return reference.Tree(
        tree.left, tree.threshold, tree.value, tree.n_samples, tree.weight_sum,
        tree.threshold_kind, tree.extremes, *map(list, zip(*terms, strict=True)),
    )  # fmt: skip


def is_same_tree(a, b):
    """Whether two reference trees take the same decisions: structure, rows and columns."""
    return (
        np.array_equal(a.left, b.left)
        and np.array_equal(a.n_samples, b.n_samples)
        and all(np.array_equal(x, y) for x, y in zip(a.feature, b.feature, strict=True))
    )


def is_stable(plain, Z, is_positive, weight, params):
    """Whether rounding decides nothing.

    The reference must grow the same tree from rows in another order, and from columns in
    units that differ by a few roundings.
    """
    for seed in range(6):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(Z))
        unit = 1 + (seed > 2) * 1e-13 * rng.normal(size=Z.shape[1])
        other_weight = None if weight is None else weight[order]
        other = grow_reference(Z[order] * unit, is_positive[order], other_weight, params)
        if not is_same_tree(plain, other):
            return False
    return True


def assert_same_tree(native, plain, exact):
    """Demand the same decisions, to the bit where sums are exact."""
    compare = assert_array_equal if exact else lambda a, b: assert_allclose(a, b, rtol=1e-6)
    assert_array_equal(native.left, plain.left)
    assert_array_equal(native.n_samples, plain.n_samples)
    if exact:
        assert_array_equal(native.threshold_kind, plain.threshold_kind)
        assert_array_equal(native.extremes, plain.extremes)
    assert_allclose(native.value, plain.value, rtol=1e-12)
    assert_allclose(native.weight_sum, plain.weight_sum, rtol=1e-12)
    is_split = plain.left >= 0
    assert_array_equal(native.threshold[~is_split], plain.threshold[~is_split])
    if exact:
        assert_array_equal(native.threshold[is_split], plain.threshold[is_split])
    for split in np.flatnonzero(is_split):  # a threshold at a mean may be nearly 0
        scale = np.abs(plain.extremes[split]).max()
        assert abs(native.threshold[split] - plain.threshold[split]) <= 1e-6 * scale
    for node in range(len(plain.left)):
        feature, weight, center, std = native.terms(node)
        assert_array_equal(feature, plain.feature[node])
        if is_split[node]:
            compare(weight, plain.weight[node])
        else:
            assert_allclose(weight, plain.weight[node], rtol=1e-6)
        spread = np.abs(plain.std[node])
        assert_allclose(center, plain.center[node], rtol=1e-12, atol=1e-9 * spread.max(initial=0))
        assert_allclose(std, spread, rtol=1e-6)


def compare_with_reference(table, weight, params, stable):
    """Demand the reference's tree, unless rounding decides; `stable` counts how often.

    Whether rounding decides is a slow question, so it is put only where the trees differ.
    """
    Z, is_positive = table
    plain = grow_reference(Z, is_positive, weight, params)
    try:
        assert_same_tree(grow(Z, is_positive, weight, params), plain, exact=False)
    except AssertionError:
        if is_stable(plain, Z, is_positive, weight, params):
            raise
        stable.assume(False)
    stable.assume(True)
