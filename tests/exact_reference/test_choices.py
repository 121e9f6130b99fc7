"""Choices on tables so small that the answer is known: what equal candidates do, and edges."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from exact import boosting, columns, hyperplanes, leaves, moments, paper, trees, votes


def boost_once(X, y, loss="squared_error", n_codes=None, weight=None, **plan):
    """Return the columns and the only tree of one round."""
    X = np.array(X, dtype=np.float64)
    learned = columns.learn_columns(X, weight, n_codes)
    rows = boosting.Rows(X, np.array(y), weight)
    plan = boosting.Plan(n_rounds=1, min_hessian=0.0, **plan)
    return learned, boosting.boost(learned, rows, None, loss, plan).trees[0]


def make_table(z, is_positive):
    """Return a table of the paper's trees from grid integers, for choices of cuts."""
    z, is_positive = np.array(z)[:, None], np.array(is_positive, dtype=bool)
    scale = moments.Scale([1.0], 0)
    return paper.Table([columns.Column()], scale, z, is_positive, np.ones(len(z), dtype=np.int64))


# ---- boosting -------------------------------------------------------------------------


def test_missing_values_go_where_they_help():
    for target, missing_left in ((9, False), (0, True)):
        X, y = [[0], [0], [1], [1], [np.nan]], [0, 0, 9, 9, target]
        _, tree = boost_once(X, y)
        assert (tree[0].threshold, tree[0].missing_left) == (0.5, missing_left)
        assert len(tree) == 3


def test_absent_categories_go_to_the_larger_side_or_left():
    for y, is_left in (([9, 9, 0, 0], True), ([9, 9, 9, 0], True), ([9, 0, 0, 0], False)):
        X = np.where(np.array(y) > 0, 0.0, 1.0)[:, None]  # the larger targets go left
        _, tree = boost_once(X, y, n_codes=[3])
        absent = {2, *range(3, 256)} if is_left else set()
        assert tree[0].codes == {0} | absent


def test_the_oldest_of_equal_nodes_is_split():
    X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 2, 100, 102]
    _, tree = boost_once(X, y, max_leaf_nodes=3, l2_regularization=0.0)
    assert [node.left for node in tree] == [1, 3, -1, -1, -1]


def test_a_value_on_the_threshold_goes_right():
    learned, tree = boost_once([[0], [1]], [0, 9])
    assert tree[0].threshold == 0.5
    assert trees.walk(tree, learned, np.array([[0.5], [np.nextafter(0.5, 0)]])).tolist() == [2, 1]


def test_weights_of_sides_have_a_minimum():
    X, y = np.arange(12)[:, None], [1] + [0] * 11
    ones = np.ones(12, dtype=np.int64)
    for loss, weight, least in (
        ("log_loss", None, 4),
        ("squared_error", ones, 4),
        ("squared_error", None, 1),
    ):
        _, tree = boost_once(X, y, loss, weight=weight, min_weight=4.0, l2_regularization=0.0)
        assert min(node.weight for node in tree) == least


def test_missing_counts_as_the_node_or_the_table():
    with_gaps = columns.Column(fill=5, has_gaps=True)
    without = columns.Column(fill=5, has_gaps=False)
    assert [hyperplanes.choose_fill(column, 3) for column in (with_gaps, without)] == [3, 5]


def test_middles_of_projections_are_rounded_up():
    _, cuts = hyperplanes.number_projections(np.array([7, 0, 1, 4, -3]), None, is_small=True)
    assert cuts == [-1, 1, 3, 6]


# ---- the paper ------------------------------------------------------------------------


def test_the_middle_of_extremes_leaves_no_side_empty():
    table, params = make_table([0, 0, 1], [1, 0, 1]), paper.Params(gamma=99.0)
    assert paper.choose_purity_cut(table, table.z[:, 0], 0.0, params) == (1, 5)
    table = make_table([-9, -2, 0, 3], [1, 0, 1, 0])
    assert paper.choose_purity_cut(table, table.z[:, 0], 0.0, params) == (-2, 5)  # of -8 / 4


@pytest.mark.parametrize(
    ("z", "is_positive", "expected"),
    [
        ([0, 1, 5, 6], [1, 1, 0, 1], (5, 1)),  # N1 = 2: targets below the rest
        ([0, 4, 5, 6], [1, 0, 1, 1], (5, 2)),  # N2: targets above
        ([0, 1, 5, 6], [0, 0, 1, 0], (5, 3)),  # N3: rest below
        ([0, 4, 5, 6], [0, 1, 0, 0], (5, 4)),  # N4: rest above
        ([0, 1, 2, 3], [1, 1, 0, 0], (2, 1)),  # N1 = N4: the first
    ],
)
def test_pure_pieces_are_cut_off(z, is_positive, expected):
    table = make_table(z, is_positive)
    cut = paper.choose_purity_cut(table, table.z[:, 0], 0.0, paper.Params())
    assert cut == expected


def test_cuts_of_least_impurity_lie_in_the_middle_and_low():
    for z, is_positive, cut in (
        ([0, 3], [0, 1], 2),
        ([-4, -1], [0, 1], -2),
        ([0, 2, 4], [1, 0, 1], 1),
    ):
        table = make_table(z, is_positive)
        assert paper.choose_gini_cut(table, table.z[:, 0], 0.0) == cut


def test_equal_columns_share_a_hyperplane_and_the_first_single_one_wins():
    X = np.repeat(np.array([[0.0], [1.0], [2.0], [5.0]]), 2, axis=1)
    ones = np.ones(4, dtype=np.int64)
    learned = columns.learn_columns(X)
    _, z = columns.encode(learned, X)
    scale = moments.make_scale(learned, z, ones)
    table = paper.Table(learned, scale, z, np.array([0, 0, 1, 1], dtype=bool), ones)
    plane = paper.grow_tree(table, paper.Params(beta=1.0))[0].split.hyperplane
    assert (plane.columns, len(set(plane.weights))) == ((0, 1), 1)
    params = paper.Params(axis_splits=True, criterion="gini")
    assert paper.grow_tree(table, params)[0].split.hyperplane.columns == (0,)


def test_distances_have_the_sign_of_the_membership():
    membership = np.array([0, leaves.ONE, leaves.ONE // 2, leaves.ONE])
    distance = np.array([3, 5, 7, 0])
    answer = votes.Answer(np.zeros(4), membership, distance, 2 * distance)
    claim, rejection, signed = votes.sum_answers([answer], -leaves.MEMBERSHIP_BITS, "membership")
    assert_array_equal(claim, [0, 1, 0.5, 1])
    assert_array_equal(rejection, [1, 0, 0.5, 0])
    assert_array_equal(signed, [-3, 5, 0, 0])
    claim, rejection, _ = votes.sum_answers([answer], -leaves.MEMBERSHIP_BITS, "margin")
    assert_array_equal(claim, [0, 10, 7, 0])
    assert_array_equal(rejection, [6, 0, 7, 0])


def test_two_classes_share_the_tie_term():
    table = make_table([0, 1, 5, 6], [0, 1, 0, 1])
    tree = paper.grow_tree(table, paper.Params(gamma=1.0, max_depth=1))
    q = votes.vote([[tree]], table.scale, table.z, 2)
    assert q.sum(axis=1) == pytest.approx(1 + votes.TIE, rel=1e-12)
