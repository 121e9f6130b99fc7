"""What tests ask of fitted models."""

import numpy as np
from numpy.testing import assert_array_equal

from lhtree.data.table import make_table
from lhtree.estimators.params import Params
from lhtree.training.local import Local
from lhtree.training.out_of_bag import OutOfBag


def assert_same_model(model, other):
    """Demand the same trees, bit for bit."""
    for name, array in vars(model.forest_).items():
        assert_array_equal(array, getattr(other.forest_, name), name)


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
