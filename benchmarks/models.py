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
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from benchmarks import paper
from lhtree import LHForestClassifier

SYNTHETIC = {"gamma": 2, "min_samples_split": 2, "n_estimators": 20, "max_samples": 0.8}
# What the paper calls a table; digits is the test part of optdigits.
PAPER_NAMES = {"connect4_onehot": "connect4", "digits": "optdigits"}

# Peers as they come, for accuracy: nothing but the seed and the threads is set.
DEFAULT_PEERS = ("CART", "RF", "ExtraTrees", "HistGB", "XGBoost", "LightGBM", "CatBoost")
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
            # Its own settings for such splits, "benchmark_rank1"; the plain ones try as many
            # times more hyperplanes as there are columns, and ended at the limit of time.
            split_axis="SPARSE_OBLIQUE",
            sparse_oblique_normalization="MIN_MAX",
            sparse_oblique_num_projections_exponent=1.0,
            num_threads=self.n_threads,
            compute_oob_performances=False,
        )
        self.model = learner.train({**self._to_frame(X), "y": y})
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: D102
        return self.model.predict(self._to_frame(X), num_threads=self.n_threads)


def make_peer(name: str, data: str, n_threads: int) -> Any:
    """Return a peer with the paper's settings where it has some, else with 100 trees."""
    given = paper.read_peer(PAPER_NAMES.get(data, data), name) or {"n_estimators": 100}
    depth, n = given.get("max_depth"), given["n_estimators"]
    depth_given = {} if depth is None else {"max_depth": depth}
    rate = {"learning_rate": r} if (r := given.get("learning_rate")) else {}
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
        return make_paper_forest(data, n_threads, 0)
    return make_peer(name, data, n_threads)


def make_paper_forest(data: str, n_threads: int, seed: int) -> LHForestClassifier:
    """Return LHT with the settings of table 5, as written."""
    settings = SYNTHETIC if data == "synth50k" else paper.read_forest(PAPER_NAMES.get(data, data))
    return LHForestClassifier(preset="paper", n_jobs=n_threads, random_state=seed, **settings)


def make_default_forest(seed: int) -> LHForestClassifier:
    """Return the forest as it comes: one setting for all data sets."""
    return LHForestClassifier(random_state=seed, n_jobs=1)


def make_default_peer(name: str, seed: int) -> Any:
    """Return a peer with its own defaults, on one thread."""
    plain = {
        "CART": DecisionTreeClassifier,
        "RF": RandomForestClassifier,
        "ExtraTrees": ExtraTreesClassifier,
        "HistGB": HistGradientBoostingClassifier,  # one thread by OMP_NUM_THREADS
    }
    if name in plain:
        return plain[name](random_state=seed)
    module = importlib.import_module(name.lower())
    if name == "XGBoost":
        return module.XGBClassifier(n_jobs=1, random_state=seed)
    if name == "LightGBM":
        return module.LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1)
    return module.CatBoostClassifier(
        thread_count=1, random_state=seed, verbose=0, allow_writing_files=False
    )


def make_paper_peer(name: str, data: str, seed: int) -> Any:
    """Return a peer with its settings of table 6; None where the table has none."""
    given = paper.read_peer(data, name)
    if given is None:
        return None
    model = make_default_peer(name, seed)
    if name == "CatBoost":
        names = {"max_depth": "depth", "n_estimators": "iterations"}
        given = {names.get(key, key): value for key, value in given.items()}
    return model.set_params(**{key: value for key, value in given.items() if value is not None})
