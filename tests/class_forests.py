"""Forests of classes of the exact engine, for tests of what explains them."""

import numpy as np
import pandas as pd

from boosted import make_frame
from lhtree import LHForestClassifier

KINDS = {"two classes": 2, "three classes": 3, "one class": 1}


def make_rows(n_classes):
    """Return a frame with gaps, units far apart and categories, and names of classes."""
    frame, y = make_frame()
    code = np.searchsorted(np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]), y)
    return frame, np.array(["high", "low", "middle"])[code]


def fit_class_forest(name, **parameters):
    """Return a fitted forest, and rows to predict, some of them unlike those of training."""
    frame, y = make_rows(KINDS[name])
    model = LHForestClassifier(**{"n_estimators": 6, "random_state": 0} | parameters)
    new = pd.concat([frame.head(60), make_frame(seed=1)[0].head(30)]).reset_index(drop=True)
    numbers = [column for column in frame if column != "color"]
    new.loc[70:, numbers] *= 7.5
    new.loc[3, numbers] = np.nan
    new.loc[4, "a"] = 1e200
    new.loc[5, "color"] = "unheard of"
    new.loc[6, "color"] = None
    return model.fit(frame, y), new
