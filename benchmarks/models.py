"""The models that are compared, by name, for a number of threads."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from threadpoolctl import threadpool_limits

from lhtree import LHForestClassifier

# The paper's table 5: gamma and min_samples, members, share of the rows.
PAPER_FORESTS: dict[str, dict[str, Any]] = {
    "satimage": {"gamma": 5, "n_estimators": 30, "max_samples": 0.8},
    "segment": {"gamma": 2, "n_estimators": 1, "max_samples": None},
    "pendigits": {"gamma": 2, "n_estimators": 20, "max_samples": 0.8},
    "synth50k": {"gamma": 2, "n_estimators": 20, "max_samples": 0.8},
    "skin": {"gamma": 2, "n_estimators": 50, "max_samples": 0.8},
    "connect4_onehot": {"gamma": 7, "n_estimators": 40, "max_samples": 0.6},
    "mnist": {
        "gamma": 6,
        "n_estimators": 20,
        "max_samples": None,
        "beta": 0.8,
        "alpha": 900,
        "standardize": False,
    },
}

# The paper's table 6: depth and number of trees or rounds; learning rate 0.1.
PAPER_PEERS: dict[str, dict[str, tuple[int, int]]] = {
    "satimage": {"RF": (15, 50), "XGBoost": (5, 130), "CatBoost": (7, 385), "LightGBM": (15, 72)},
    "segment": {"RF": (15, 100), "XGBoost": (10, 200), "CatBoost": (5, 200), "LightGBM": (5, 37)},
    "pendigits": {
        "RF": (15, 150),
        "XGBoost": (5, 300),
        "CatBoost": (10, 200),
        "LightGBM": (5, 106),
    },
    "mnist": {"LightGBM": (10, 138)},
}

PEERS = ("RF", "ExtraTrees", "HistGB", "XGBoost", "LightGBM", "CatBoost", "YDF")
LHT = ("LHT paper", "LHT default")


class LimitedHistGB(HistGradientBoostingClassifier):  # type: ignore[misc]
    """HistGradientBoosting on a given number of threads, which it takes from OpenMP."""

    n_threads = 1

    def fit(self, X: Any, y: Any) -> Any:  # noqa: D102
        with threadpool_limits(self.n_threads, "openmp"):
            return super().fit(X, y)

    def predict_proba(self, X: Any) -> Any:  # noqa: D102
        with threadpool_limits(self.n_threads, "openmp"):
            return super().predict_proba(X)


class YdfForest:
    """YDF's random forest with sparse oblique splits, behind scikit-learn's methods."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads

    def _to_frame(self, X: Any) -> dict[str, Any]:
        return {f"x{j}": X[:, j] for j in range(X.shape[1])}

    def fit(self, X: Any, y: Any) -> YdfForest:  # noqa: D102
        import ydf

        ydf.verbose(0)
        learner = ydf.RandomForestLearner(
            label="y",
            num_trees=100,
            split_axis="SPARSE_OBLIQUE",
            num_threads=self.n_threads,
            compute_oob_performances=False,
        )
        self.model = learner.train({**self._to_frame(X), "y": y})
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: D102
        return self.model.predict(self._to_frame(X), num_threads=self.n_threads)


def make_peer(name: str, data: str, n_threads: int) -> Any:
    """Return a peer with the paper's settings where it has some, else with 100 trees."""
    depth, n = PAPER_PEERS.get(data, {}).get(name, (None, 100))
    depth_given = {} if depth is None else {"max_depth": depth}
    rate = {} if depth is None else {"learning_rate": 0.1}
    common: dict[str, Callable[[], Any]] = {
        "RF": lambda: RandomForestClassifier(n, n_jobs=n_threads, random_state=0, **depth_given),
        "ExtraTrees": lambda: ExtraTreesClassifier(n, n_jobs=n_threads, random_state=0),
        "HistGB": lambda: make_limited(n_threads),
        "YDF": lambda: YdfForest(n_threads),
    }
    if name in common:
        return common[name]()
    module = importlib.import_module(name.lower())
    if name == "XGBoost":
        return module.XGBClassifier(n_estimators=n, n_jobs=n_threads, **depth_given, **rate)
    if name == "LightGBM":
        return module.LGBMClassifier(
            n_estimators=n, n_jobs=n_threads, verbose=-1, **depth_given, **rate
        )
    if depth is not None:
        depth_given = {"depth": depth}
    return module.CatBoostClassifier(
        iterations=n, thread_count=n_threads, verbose=0, allow_writing_files=False,
        **depth_given, **rate,
    )  # fmt: skip


def make_limited(n_threads: int) -> LimitedHistGB:
    """Return HistGradientBoosting for a number of threads."""
    model = LimitedHistGB(random_state=0)
    model.n_threads = n_threads
    return model


def make_model(name: str, data: str, n_threads: int) -> Any:
    """Return an unfitted model by its name in the tables."""
    if name == "LHT default":
        return LHForestClassifier(n_jobs=n_threads, random_state=0)
    if name == "LHT paper":
        settings = dict(PAPER_FORESTS.get(data, PAPER_FORESTS["synth50k"]))
        settings["min_samples_split"] = settings["gamma"]
        return LHForestClassifier(preset="paper", n_jobs=n_threads, random_state=0, **settings)
    return make_peer(name, data, n_threads)
