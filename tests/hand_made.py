"""A model of one split, made by hand."""

import numpy as np

from lhtree import Forest, LHTClassifier


def make_hand_made_model(standardize=False):
    """Return a model of one split, made by hand.

    Columns a and b have the means 10 and 20 and the standard deviations 2 and 4 if
    standardised. The split is z_a - z_b / 2 < 1; its rows have the center (0.5, -1). On the
    left all rows are negative; on the right 3 of 4 are positive, with slopes 0.25 and -0.5
    about (1, 0).
    """
    model = LHTClassifier(standardize=standardize)
    model.fit(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array(["no", "yes"]))
    model.forest_ = Forest(
        tree_start=np.array([0, 3]),
        positive_class=np.array([1], dtype=np.int32),
        left=np.array([1, -1, -1], dtype=np.int32),
        start=np.array([0, 2, 2, 4]),
        feature_start=np.array([0, 0, 0, 0]),
        feature=np.array([], dtype=np.int32),
        weight=np.array([1.0, -0.5, 0.25, -0.5]),
        center=np.array([0.5, -1.0, 1.0, 0.0]),
        std=np.ones(4),
        threshold=np.array([1.0, 0.0, 0.0]),
        norm=np.array([np.sqrt(1.25), 0.0, 0.0]),
        value=np.array([0.375, 0.0, 0.75]),
        n_samples=np.array([8, 4, 4]),
        weight_sum=np.array([8.0, 4.0, 4.0]),
        threshold_kind=np.array([3, 0, 0], dtype=np.int8),
        extremes=np.array([[1.0, 5.0, -4.0, 2.0], [0, 0, 0, 0], [0, 0, 0, 0]]),
        column_mean=np.array([10.0, 20.0]) if standardize else np.zeros(2),
        column_std=np.array([2.0, 4.0]) if standardize else np.ones(2),
    )
    return model
