"""What tests ask of fitted models."""

from dataclasses import fields

import numpy as np
from numpy.testing import assert_array_equal

from lhtree import check_forest
from lhtree.data.table import make_table
from lhtree.estimators.params import Params
from lhtree.model.ensemble import Ensemble
from lhtree.model.ensemble_validation import check_ensemble
from lhtree.training.local import Local
from lhtree.training.out_of_bag import OutOfBag


def list_arrays(forest):
    """Return all that a forest is made of, by name."""
    own = {each.name: getattr(forest, each.name) for each in fields(forest)}
    columns = own.pop("columns", None)  # the grids of an ensemble
    return own if columns is None else own | vars(columns)


def assert_same_model(model, other):
    """Demand the same trees, bit for bit."""
    assert type(model.forest_) is type(other.forest_)
    expected = list_arrays(other.forest_)
    for name, array in list_arrays(model.forest_).items():
        assert_array_equal(array, expected[name], name)


def check_trees(forest):
    """Refuse trees that no fit could have grown."""
    (check_ensemble if isinstance(forest, Ensemble) else check_forest)(forest)


def list_features(forest):
    """Return for each tree the set of the columns that its splits read."""
    return [
        {j for node in np.flatnonzero(tree.left >= 0).tolist() for j in read_split(tree, node)}
        for tree in forest
    ]


def read_split(tree, node):
    """Return the columns that a split reads."""
    if not hasattr(tree, "split"):
        return set(tree.terms(node)[0].tolist())
    split = tree.split(node)
    return {split.column} if hasattr(split, "column") else set(split.feature.tolist())


def find_undrawn(model, n_rows):
    """Return which rows each estimator did not draw: an array of an estimator per row."""
    is_out = np.ones((model.n_estimators_, n_rows), dtype=bool)
    for i, rows in enumerate(model.estimators_samples_):
        is_out[i, rows] = False
    return is_out


def read_shares(model, X):
    """Return what each estimator of a forest of classes says: [estimator, row, class]."""
    leaf, n_classes = model.apply(X), model.n_classes_
    of_trees = [tree.prediction[leaf[:, k], 0] for k, tree in enumerate(model.trees_)]
    share = np.stack(of_trees).reshape(model.n_estimators_, -1, len(X)).transpose(0, 2, 1)
    return np.concatenate([1 - share, share], axis=2) if n_classes == 2 else share


def make_out_of_bag(model, X, y):
    """Return the out-of-bag votes of a fitted forest on its training rows."""
    table, target = make_table(X, y, None)
    n_columns = table.n_columns
    backend = Local(
        table, target, names=None, is_indicator=np.zeros(n_columns, dtype=bool), n_threads=1
    )
    plan = Params.read(model).resolve(
        model._draw,
        n_columns=n_columns,
        n_weighted=table.weight_sum,
        n_classes=model.n_classes_,
        seed=model._seed,
    )
    return OutOfBag(backend, plan, model.voting_, "")


def take_rows(out_of_bag, n_estimators, most_rows=None):
    """Return training rows and which of the first estimators did not draw them."""
    return out_of_bag.backend.take_out_of_bag(out_of_bag.plan, n_estimators, most_rows)
