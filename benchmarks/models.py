"""The models that are compared, by the names that tables show.

=============================== =========================================================
name                            model
=============================== =========================================================
LHForest, defaults              ``LHForestClassifier()``, or ``LHForestRegressor()``
LHForest, preset paper          with the paper's settings for the data set (table 5)
LHForest, tuned                 :class:`TunedForest`, a small search on the training rows
LHForest, name=value, ...       the forest with these parameters; so for LHBoost and LHT
RF, LightGBM, ...               a peer with its defaults: see :data:`LIBRARIES`
RF (table 6)                    a peer with the paper's settings for the data set
CatBoost (100 trees)            a peer with 100 trees
YDF                             YDF's forest of 100 trees with sparse oblique splits
YDF oblique                     YDF's boosting with such splits, by its template
=============================== =========================================================
"""

from __future__ import annotations

import ast
import csv
import importlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split
from sklearn.preprocessing import OrdinalEncoder

from benchmarks.data import find_text, is_of_numbers
from lhtree import LHForestClassifier

BOOST = "LHBoost, defaults"
DEFAULTS = "LHForest, defaults"
PAPER = "LHForest, preset paper"
TUNED = "LHForest, tuned"
PLAIN = "LHForest, calibration=None"
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


def read_paper_forest(data: str) -> dict[str, Any] | None:
    """Return LHT's parameters in table 5, as `LHForestClassifier` names them; None if absent."""
    row = next((row for row in read_paper_table(5) if row["dataset"] == data), None)
    if row is None:
        return None
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


class Library(NamedTuple):
    """Where models are found, and how they are told of threads and categories."""

    module: str
    name: str  # followed by Classifier or Regressor
    form: str = "as it is"  # of text: also "words", "categories", "codes"
    threads: str | None = "n_jobs"
    categories: str | None = None  # parameter with the places of the columns of text
    settings: Mapping[str, Any] = MappingProxyType({})
    seed: str | None = "random_state"


OURS = {
    "LHBoost": Library("lhtree", "LHBoost"),
    "LHForest": Library("lhtree", "LHForest"),
    "LHT": Library("lhtree", "LHT", seed=None),
}
LIBRARIES = {
    **OURS,
    "LightGBM": Library("lightgbm", "LGBM", "categories", settings={"verbose": -1}),
    "XGBoost": Library("xgboost", "XGB", "categories", settings={"enable_categorical": True}),
    "HistGB": Library("sklearn.ensemble", "HistGradientBoosting", "categories", threads=None),
    "CatBoost": Library(
        *("catboost", "CatBoost", "words", "thread_count", "cat_features"),
        settings={"verbose": 0, "allow_writing_files": False},
    ),
    "ChimeraBoost": Library(
        "chimeraboost", "ChimeraBoost", "words", "thread_count", "cat_features"
    ),
    "YDF oblique": Library(__name__, "YdfBoost", "words"),
    "OQBoost": Library("oqboost", "OQBoost", "codes", None, "categorical_features"),
    "RF": Library("sklearn.ensemble", "RandomForest", "codes"),
    "ExtraTrees": Library("sklearn.ensemble", "ExtraTrees", "codes"),
    "CART": Library("sklearn.tree", "DecisionTree", "codes", threads=None),
    "YDF": Library(__name__, "YdfForest", "words"),
}
MOST_CODES = 255  # categories of a column that HistGB takes


def is_ours(name: str) -> bool:
    """Return whether a model is of this package."""
    return name.partition(", ")[0] in OURS


def get_library(name: str) -> Library:
    """Return where the model of a name is found."""
    library = LIBRARIES.get(name.partition(", ")[0].partition(" (")[0])
    if library is None or (", " in name and not is_ours(name)):
        raise ValueError(f"No model is called {name!r}; see benchmarks/models.py.")
    return library


def make_model(
    name: str, data: str, n_threads: int = 1, seed: int = 0, text: Sequence[int] = ()
) -> Any:
    """Return an unfitted model for a table; None where the paper has no settings for it.

    `text` has the places of the columns of text. Peers that take their threads from OpenMP
    need ``OMP_NUM_THREADS``, which workers set.
    """
    if name == TUNED:
        return TunedForest(seed)
    library = get_library(name)
    settings = read_settings(name, data)
    if settings is None:
        return None
    told: dict[str | None, Any] = {library.seed: seed, library.threads: n_threads}
    if text:
        told[library.categories] = list(text)
    settings = {**settings, **library.settings, **{k: v for k, v in told.items() if k}}
    kind = "Regressor" if is_of_numbers(data) else "Classifier"
    return getattr(importlib.import_module(library.module), library.name + kind)(**settings)


def read_settings(name: str, data: str) -> dict[str, Any] | None:
    """Return what the name of a model says of its parameters; None if the paper has to."""
    data = _PAPER_NAMES.get(data, data)
    if name == PAPER:
        paper = _SYNTH50K if data == "synth50k" else read_paper_forest(data)
        return paper and {"preset": "paper", **paper}
    if is_ours(name):
        return {} if name.endswith(", defaults") else parse_parameters(name)
    peer, _, group = name.partition(" (")
    settings: dict[str, Any] | None = {"n_estimators": 100} if f" ({group}" == HUNDRED else {}
    if f" ({group}" == TABLE_6:
        settings = read_paper_peer(data, peer)
    words = {"max_depth": "depth", "n_estimators": "iterations"} if peer == "CatBoost" else {}
    return settings and {words.get(key, key): value for key, value in settings.items()}


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


def name_timed_peer(peer: str, data: str) -> str:
    """Return the name of a peer whose time counts: as in the paper, or with 100 trees."""
    if read_paper_peer(_PAPER_NAMES.get(data, data), peer):
        return peer + TABLE_6
    return peer + HUNDRED if peer == "CatBoost" else peer  # the others have 100 by default


def convert(name: str, X: Any, X_test: Any) -> tuple[Any, Any]:
    """Return training and test rows in the form that a model is made for."""
    text, form = find_text(X), get_library(name).form
    if not text or form == "as it is":
        return X, X_test
    X, X_test = X.copy(), X_test.copy()
    if form == "words":  # a gap is a word, too
        for frame in (X, X_test):
            frame[text] = frame[text].fillna("").astype(str).astype(object)
        return X, X_test
    coded = text
    if form == "categories":
        coded = [column for column in text if X[column].nunique() > MOST_CODES]
        coded = coded if name == "HistGB" else []
        for column in set(text) - set(coded):
            X[column] = X[column].astype("category")
            is_known = X_test[column].isin(X[column].cat.categories)  # a new word is a gap
            X_test[column] = X_test[column].where(is_known).astype(X[column].dtype)
    if coded:
        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        X[coded] = encoder.fit_transform(X[coded].astype(object)).astype(float)
        X_test[coded] = encoder.transform(X_test[coded].astype(object)).astype(float)
    return (
        (X.to_numpy(dtype=float), X_test.to_numpy(dtype=float)) if form == "codes" else (X, X_test)
    )


class YdfBoostClassifier:
    """YDF's boosting with sparse oblique splits, behind scikit-learn's methods."""

    task = "CLASSIFICATION"
    learner = "GradientBoostedTreesLearner"

    def __init__(self, n_jobs: int, random_state: int) -> None:
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _to_columns(self, X: Any) -> dict[str, Any]:
        if isinstance(X, np.ndarray):
            return {f"x{j}": X[:, j] for j in range(X.shape[1])}
        return {f"x{j}": X[name].to_numpy() for j, name in enumerate(X)}

    def _get_settings(self, learner: Any) -> dict[str, Any]:
        return dict(learner.hyperparameter_templates()["benchmark_rank1v1"])

    def fit(self, X: Any, y: Any) -> YdfBoostClassifier:
        """Train with the settings for such splits."""
        import ydf

        ydf.verbose(0)
        learner = getattr(ydf, self.learner)
        self.model_ = learner(
            label="y", task=getattr(ydf.Task, self.task), random_seed=self.random_state,
            num_threads=self.n_jobs, **self._get_settings(learner),
        ).train({**self._to_columns(X), "y": y})  # fmt: skip
        if self.task == "CLASSIFICATION":
            self.classes_ = np.array(self.model_.label_classes()).astype(np.int64)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return a column for each class."""
        proba = self.model_.predict(self._to_columns(X), num_threads=self.n_jobs)
        return np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba

    def predict(self, X: Any) -> Any:
        """Return labels, or numbers."""
        if self.task == "REGRESSION":
            return self.model_.predict(self._to_columns(X), num_threads=self.n_jobs)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class YdfBoostRegressor(YdfBoostClassifier):
    """The same for numbers."""

    task = "REGRESSION"


class YdfForestClassifier(YdfBoostClassifier):
    """YDF's random forest with sparse oblique splits.

    Its own settings for such splits, "benchmark_rank1"; the plain ones try as many times more
    hyperplanes as there are columns, and ended at the limit of time.
    """

    learner = "RandomForestLearner"

    def _get_settings(self, learner: Any) -> dict[str, Any]:
        return {
            "num_trees": 100, "split_axis": "SPARSE_OBLIQUE",
            "sparse_oblique_normalization": "MIN_MAX",
            "sparse_oblique_num_projections_exponent": 1.0, "compute_oob_performances": False,
        }  # fmt: skip


class YdfForestRegressor(YdfForestClassifier):
    """The same for numbers."""

    task = "REGRESSION"


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
        self.classes_ = self.model_.fit(X, y).classes_
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
