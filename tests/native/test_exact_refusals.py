"""What the core of the exact engine refuses: arrays and plans that do not fit."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from exact import boosting, forests
from lhtree import _core
from lhtree.model.grid_columns import GridColumns
from lhtree.training.boosting_rows import Rows
from native.test_exact_engine import boost, learn, make_case


def make_small_case(n_outputs=1):
    columns, encoded = learn(np.array([[0.0], [1.0], [4.0]]), np.zeros(1, dtype=np.int32), None)
    y, score = np.zeros(3, np.int32), np.zeros((3, n_outputs), np.int64)
    return columns, Rows(**vars(encoded), y=y, weight=None, score=score)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bin": np.full((3, 1), 9, dtype=np.uint8)}, "a bin is out of range"),
        ({"bin": np.zeros((2, 1), dtype=np.uint8)}, "bin must have one entry per row"),
        ({"z": np.zeros((3, 2), dtype=np.int32)}, "z must have the shape of bin"),
        ({"score": np.zeros((2, 1), dtype=np.int64)}, "score must have one entry per row"),
        ({"score": np.zeros(3, dtype=np.int64)}, "the array 'score' has the wrong type"),
        ({"weight": np.zeros(3, dtype=np.int64)}, "weights must be positive"),
        ({"weight": np.ones(2, dtype=np.int64)}, "weight must have one entry per row"),
        ({"held_out": np.ones(3, dtype=np.uint8)}, "there must be rows to train on"),
        ({"held_out": np.zeros(2, dtype=np.uint8)}, "held_out must have one entry per row"),
        ({"y": np.zeros(3)}, "the array 'y' has the wrong type"),
        ({"n_outputs": 0}, "n_outputs is out of range"),
        ({"n_outputs": 2}, "score must have one entry per row"),
    ],
)
def test_the_core_refuses_rows_that_do_not_fit(changes, message):
    columns, rows = make_small_case()
    plan = boosting.Plan(n_hyperplanes=1, min_weight=0)
    changed = SimpleNamespace(**({**vars(rows), "n_outputs": 1} | changes))
    with pytest.raises(ValueError, match=message):
        _core.boost(columns, changed, rows, "log_loss", plan, 1)


@pytest.mark.parametrize("y", [-1, 3, 2**31 - 1])
def test_the_core_refuses_classes_without_a_score(y):
    columns, rows = make_small_case(3)
    changed = replace(rows, y=np.array([0, y, 2], dtype=np.int32))
    for parts in ((rows, changed), (changed, rows)):
        with pytest.raises(ValueError, match="y must have indices of classes"):
            _core.boost(columns, *parts, "log_loss", boosting.Plan(min_weight=0), 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"monotonic_cst": (2,)}, "monotonic_cst must have -1, 0 or 1 only"),
        ({"monotonic_cst": (1, 0)}, "monotonic_cst must have one entry per column"),
        ({"interaction_cst": ((),)}, "interaction_cst must have columns of the table"),
        ({"interaction_cst": ((0, 1),)}, "interaction_cst must have columns of the table"),
        ({"interaction_cst": ((-1,),)}, "interaction_cst must have columns of the table"),
    ],
)
def test_the_core_refuses_constraints_that_do_not_fit(changes, message):
    columns, rows = make_small_case()
    plan = boosting.Plan(min_weight=0)
    with pytest.raises(ValueError, match=message):
        _core.boost(columns, rows, rows, "log_loss", replace(plan, **changes), 1)


def test_the_core_refuses_trends_of_categories_and_of_several_outputs():
    plan = boosting.Plan(min_weight=0, monotonic_cst=(1,))
    columns, many = make_small_case(3)
    with pytest.raises(ValueError, match="monotonic_cst needs a loss with one output"):
        _core.boost(columns, many, many, "log_loss", plan, 1)
    table = np.array([[0.0], [1.0]]), np.array([2], dtype=np.int32), None
    case = make_case(table, ("squared_error", 1), plan, 0)
    with pytest.raises(ValueError, match="a column of categories has no trend"):
        boost(case)


def test_the_core_refuses_unknown_losses_columns_and_outputs():
    columns, rows = make_small_case()
    plan = boosting.Plan(min_weight=0)
    with pytest.raises(ValueError, match="loss is unknown"):
        _core.boost(columns, rows, rows, "huber", plan, 1)
    for subsample in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="subsample must be above 0"):
            _core.boost(columns, rows, rows, "log_loss", replace(plan, subsample=subsample), 1)
    with pytest.raises(ValueError, match="max_features must be at least 0"):
        _core.boost(columns, rows, rows, "log_loss", replace(plan, max_features=-1), 1)
    for max_bins in (1, 256):
        with pytest.raises(ValueError, match="max_bins must lie from 2 to 255"):
            learn(np.zeros((1, 1)), np.zeros(1, dtype=np.int32), None, max_bins=max_bins)
    many = make_small_case(3)[1]
    with pytest.raises(ValueError, match="the loss has one output"):
        _core.boost(columns, many, many, "squared_error", plan, 1)
    with pytest.raises(ValueError, match="all rows must have the same outputs"):
        _core.boost(columns, many, rows, "log_loss", plan, 1)
    broken = GridColumns(**(vars(columns) | {"power": np.array([4000], dtype=np.int16)}))
    with pytest.raises(ValueError, match="the power of a grid is out of range"):
        _core.boost(broken, rows, rows, "log_loss", plan, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_draws": 0}, "n_draws is out of range"),
        ({"n_draws": 4}, "n_draws is out of range"),
        ({"n_estimators": -1}, "n_estimators is out of range"),
        ({"first_estimator": -1}, "n_estimators is out of range"),
        ({"max_features": -1}, "max_features must be at least 0"),
        ({"max_leaf_nodes": -1}, "max_leaf_nodes must be at least 0"),
        ({"unit_weight": 0.0}, "unit_weight must be above 0"),
        ({"monotonic_cst": (1, 1)}, "monotonic_cst must have one entry per column"),
        ({"interaction_cst": ((1,),)}, "a group of interaction_cst must have columns"),
    ],
)
def test_the_core_refuses_plans_of_forests_that_do_not_fit(changes, message):
    columns, rows = make_small_case()
    plan = replace(forests.Plan(n_draws=3), **changes)
    with pytest.raises(ValueError, match=message):
        _core.grow_averaged(columns, rows, plan, 1, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"held_out": np.zeros(3, dtype=np.uint8)},
        {"score": np.zeros((3, 2), dtype=np.int64)},
        {"weight": np.zeros(3, dtype=np.int64)},
        {"y": np.zeros(2, dtype=np.int32)},
    ],
)
def test_the_core_refuses_rows_of_forests_that_do_not_fit(changes):
    columns, rows = make_small_case()
    with pytest.raises(ValueError, match=r"rows with one score|one entry per row|be positive"):
        _core.grow_averaged(columns, replace(rows, **changes), forests.Plan(n_draws=3), 1, None)
