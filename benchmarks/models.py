"""The models that are compared, by the names that tables show.

=============================== =========================================================
name                            model
=============================== =========================================================
LHForest, defaults              ``LHForestClassifier()``
LHForest, preset paper          with the paper's settings for the data set (table 5)
LHForest, tuned                 :class:`TunedForest`, a small search on the training rows
LHForest, defaults, calibrated  ``LHForestClassifier(calibration="oob")``
LHForest, name=value, ...       ``LHForestClassifier`` with these parameters
LHT, name=value, ...            ``LHTClassifier`` with these parameters
RF, ExtraTrees, HistGB, CART    scikit-learn's forests, boosting and tree with their defaults
XGBoost, LightGBM, CatBoost     with their defaults
RF (table 6)                    a peer with the paper's settings for the data set
CatBoost (100 trees)            a peer with 100 trees
YDF                             YDF's forest of 100 trees with sparse oblique splits
=============================== =========================================================
"""

from __future__ import annotations

import ast
import csv
import importlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split
from sklearn.tree import DecisionTreeClassifier

from lhtree import LHForestClassifier, LHTClassifier

DEFAULTS = "LHForest, defaults"
PAPER = "LHForest, preset paper"
TUNED = "LHForest, tuned"
CALIBRATED = "LHForest, defaults, calibrated"
PEERS = ("CART", "RF", "ExtraTrees", "HistGB", "XGBoost", "LightGBM", "CatBoost")
PAPER_PEERS = ("RF", "XGBoost", "LightGBM", "CatBoost")  # those of the paper's table 6
TABLE_6 = " (table 6)"
HUNDRED = " (100 trees)"


# ---- The paper's tables
#
# "LHT: Statistically-Driven Oblique Decision Trees for Interpretable Classification" by Hongyi
# Li, Jun Xu and William Ward Armstrong, as printed: 1 accuracy of single oblique trees and LHT,
# 2 of ensembles and LHT, 3 training time in seconds, 4 Wine by beta, 5 settings of LHT, 6 of
# the peers. Misprints are kept: table 1 has n = 67757 for connect4 (67557), 784 for
# blood_transfusion (748) and 6898 for wine_white (4898); table 2 has m = 3 for banknote (4).


def _convert(word: str) -> Any:
    if word in ("True", "False", ""):
        return {"True": True, "False": False, "": None}[word]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


@cache
def read_paper_table(number: int) -> list[dict[str, Any]]:
    """Return the rows of a table; what reads as a number is one, what is empty is None."""
    path = Path(__file__).parent / "paper" / f"table_{number}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: _convert(word) for name, word in row.items()} for row in csv.DictReader(file)
        ]


def read_paper_accuracy(model: str) -> dict[str, tuple[float, float]]:
    """Return accuracy and standard deviation of a column of tables 1 and 2, by data set."""
    return {
        row["dataset"]: (float(row[model]), float(row[f"{model}_std"]))
        for number in (1, 2)
        for row in read_paper_table(number)
        if model in row
    }


def read_paper_forest(data: str) -> dict[str, Any]:
    """Return LHT's parameters for a data set in table 5, as `LHForestClassifier` names them."""
    row = next(row for row in read_paper_table(5) if row["dataset"] == data)
    rate = row["forest_rate"]
    return {
        "gamma": row["gamma_and_min_samples"],
        "min_samples_split": row["gamma_and_min_samples"],
        "beta": row["beta_prime_or_beta"],
        "n_estimators": row["trees_per_class"],
        "max_samples": None if rate == 1 else rate,
        "alpha": row["alpha"],
        "standardize": row["normalized"],
    }


def read_paper_peer(data: str, peer: str) -> dict[str, Any] | None:
    """Return depth, learning rate and number of trees of a peer in table 6; None if absent."""
    for row in read_paper_table(6):
        if (row["dataset"], row["method"]) == (data, peer):
            fields = ("max_depth", "learning_rate", "n_estimators")
            return {key: row[key] for key in fields if row[key] is not None}
    return None


# What the paper calls a table; digits is the test part of optdigits.
_PAPER_NAMES = {"connect4_onehot": "connect4", "digits": "optdigits"}
_SYNTH50K = {"gamma": 2, "min_samples_split": 2, "n_estimators": 20, "max_samples": 0.8}
BETAS = tuple(f"LHT, beta={row['beta']:g}" for row in read_paper_table(4))


# ---- Models by name


def make_model(name: str, data: str, n_threads: int = 1, seed: int = 0) -> Any:
    """Return an unfitted model; None where the paper has no settings for the data set.

    Peers that take their threads from OpenMP need ``OMP_NUM_THREADS``, which workers set.
    """
    data = _PAPER_NAMES.get(data, data)
    given = {"n_jobs": n_threads, "random_state": seed}
    if name == DEFAULTS:
        return LHForestClassifier(**given)
    if name == CALIBRATED:
        return LHForestClassifier(calibration="oob", oob_score=True, **given)
    if name == TUNED:
        return TunedForest(seed)
    if name == PAPER:
        paper = _SYNTH50K if data == "synth50k" else read_paper_forest(data)
        return LHForestClassifier(preset="paper", **given, **paper)
    if name.startswith("LHForest, "):
        return LHForestClassifier(**given, **parse_parameters(name))
    if name.startswith("LHT, "):
        return LHTClassifier(n_jobs=n_threads, **parse_parameters(name))
    if name.endswith(TABLE_6):
        peer = name.removesuffix(TABLE_6)
        settings = read_paper_peer(data, peer)
        return None if settings is None else make_peer(peer, n_threads, seed, **settings)
    if name.endswith(HUNDRED):
        return make_peer(name.removesuffix(HUNDRED), n_threads, seed, n_estimators=100)
    return make_peer(name, n_threads, seed)


def parse_parameters(name: str) -> dict[str, Any]:
    """Return the parameters in the name of a model, such as ``LHForest, max_features=1.0``."""
    try:
        call = ast.parse(f"f({name.partition(', ')[2]})", mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args:
            raise ValueError
        return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError):
        raise ValueError(f"No model is called {name!r}: write 'LHForest, name=value'.") from None


def make_peer(name: str, n_threads: int, seed: int, **settings: Any) -> Any:
    """Return a peer with its own defaults, but for `settings` in the paper's words."""
    plain = {
        "CART": (DecisionTreeClassifier, {}),
        "RF": (RandomForestClassifier, {"n_jobs": n_threads}),
        "ExtraTrees": (ExtraTreesClassifier, {"n_jobs": n_threads}),
        "HistGB": (HistGradientBoostingClassifier, {}),
    }
    if name in plain:
        kind, more = plain[name]
        return kind(random_state=seed, **more, **settings)
    if name == "YDF":
        return YdfForest(n_threads)
    if name not in PEERS:
        raise ValueError(f"No model is called {name!r}; see benchmarks/models.py.")
    module = importlib.import_module(name.lower())
    if name == "XGBoost":
        return module.XGBClassifier(n_jobs=n_threads, random_state=seed, **settings)
    if name == "LightGBM":
        return module.LGBMClassifier(n_jobs=n_threads, random_state=seed, verbose=-1, **settings)
    words = {"max_depth": "depth", "n_estimators": "iterations"}
    return module.CatBoostClassifier(
        thread_count=n_threads, random_state=seed, verbose=0, allow_writing_files=False,
        **{words.get(key, key): value for key, value in settings.items()},
    )  # fmt: skip


def name_timed_peer(peer: str, data: str) -> str:
    """Return the name of a peer whose time counts: as in the paper, or with 100 trees."""
    if read_paper_peer(_PAPER_NAMES.get(data, data), peer):
        return peer + TABLE_6
    return peer + HUNDRED if peer == "CatBoost" else peer  # the others have 100 by default


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


# ---- The tuned forest

Settings = dict[str, dict[str, Any]]

ALL_COLUMNS = "all columns"
SETTINGS: Settings = {
    "default": {},
    ALL_COLUMNS: {"max_features": 1.0},
    "single columns": {"n_hyperplanes": 0},
    "single columns, all": {"n_hyperplanes": 0, "max_features": 1.0},
    "hyperplanes": {"axis_splits": False},
    "standardized": {"contrast": "standardized"},
    "large leaves": {"min_samples_leaf": 10},
    "few rows": {"max_samples": 0.3},
    "paper, beta 0": {"preset": "paper"},
    "paper, beta 0.8": {"preset": "paper", "beta": 0.8},
    "paper, beta 0.8, raw": {"preset": "paper", "beta": 0.8, "standardize": False},
    "paper, beta 0.8, standardized": {
        "preset": "paper", "beta": 0.8, "contrast": "standardized"
    },
    "paper, beta 1, gamma 6, raw": {
        "preset": "paper", "beta": 1.0, "gamma": 6, "standardize": False
    },
}  # fmt: skip
MAX_COLUMNS = 128  # of hyperplanes over all columns: their time grows with the cube
MAX_ROWS = 2000
MAX_REPEATS = 3
N_ESTIMATORS = 20
N_FOLDS = 3


class TunedForest:
    """A forest that chooses one of :data:`SETTINGS` by cross-validation in `fit`.

    Each setting is tried with few estimators on at most 2,000 training rows, three folds each,
    and more repeats of them on small tables. The one with the best mean accuracy is grown on
    all training rows, unless its lead over the defaults is within the standard error of that
    lead: then the defaults stay. Test rows play no part.
    """

    def __init__(self, seed: int, settings: Settings | None = None) -> None:
        self.seed = seed
        self.settings = SETTINGS if settings is None else settings

    def fit(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> TunedForest:
        """Choose a setting and grow the forest."""
        self.scores_ = score_settings(X, y, self.settings, self.seed)
        self.setting_ = choose_setting(self.scores_)
        self.model_ = LHForestClassifier(
            random_state=self.seed, n_jobs=1, **self.settings[self.setting_]
        )
        self.model_.fit(X, y)
        return self

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of the chosen forest."""
        proba: NDArray[np.float64] = self.model_.predict_proba(X)
        return proba


def choose_setting(scores: dict[str, NDArray[np.float64]]) -> str:
    """Return the best setting; the defaults unless its lead is above its standard error."""
    best = max(scores, key=lambda name: float(np.round(scores[name].mean(), 9)))
    lead = scores[best] - scores["default"]
    error = lead.std(ddof=1) / np.sqrt(len(lead))
    return best if lead.mean() > error else "default"


def score_settings(
    X: NDArray[np.float64], y: NDArray[np.int64], settings: Settings, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Return the accuracy of each setting on each fold."""
    if len(X) > MAX_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MAX_ROWS, stratify=y, random_state=seed)
    is_common = np.bincount(y)[y] >= N_FOLDS  # rarer classes would miss in some folds
    X, y = X[is_common], y[is_common]
    n_repeats = int(np.clip(MAX_ROWS // len(X), 1, MAX_REPEATS))
    folds = RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=n_repeats, random_state=seed)
    scores = {}
    for name, setting in settings.items():
        if name == ALL_COLUMNS and X.shape[1] > MAX_COLUMNS:
            continue
        model = LHForestClassifier(N_ESTIMATORS, random_state=seed, n_jobs=1, **setting)
        scores[name] = np.array(
            [model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds.split(X, y)]
        )
    return scores
