"""The paper's settings on the paper's data sets."""

import numpy as np
import pytest

from lhtree import LHForestClassifier


@pytest.mark.parametrize(
    ("name", "settings", "least"),
    [
        ("satimage", {"n_estimators": 30, "gamma": 5, "min_samples_split": 5}, 0.909),
        ("pendigits", {"n_estimators": 20, "gamma": 2, "min_samples_split": 2}, 0.970),
    ],
)
def test_papers_forests_reach_the_papers_accuracy(load_table, name, settings, least):
    table = load_table(name)
    X, y = table.drop(columns=["target", "split"]), table["target"]
    is_train = table["split"] == "train"
    scores = [
        LHForestClassifier(
            preset="paper", max_samples=0.8, random_state=seed, n_jobs=2, **settings
        )
        .fit(X[is_train], y[is_train])
        .score(X[~is_train], y[~is_train])
        for seed in range(5)
    ]
    assert np.mean(scores) >= least
