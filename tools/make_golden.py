"""Save small models of every kind with their predictions, for later versions to reproduce.

Usage::

    python tools/make_golden.py              # writes those that are missing
    python tools/make_golden.py --list

Existing files in ``tests/persist/golden`` are never overwritten: each keeps what the
version that saved it wrote. A new kind of state gets a new entry here.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

import lhtree
from lhtree import (
    LHBoostClassifier,
    LHBoostRegressor,
    LHForestClassifier,
    LHForestRegressor,
    LHTClassifier,
)

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "persist" / "golden"
N_ROWS = 12


def load_flowers(n_classes=3, names=None):
    """Return every second row of iris as an array, with labels of choice."""
    X, y = load_iris(return_X_y=True)
    y = np.minimum(y, n_classes - 1)
    return X[::2], (y if names is None else np.array(names)[y])[::2]


def load_frame():
    """Return iris as a frame with named columns, and strings as labels."""
    data = load_iris(as_frame=True)
    return data.data[::2], data.target_names[data.target][::2]


def load_mixed():
    """Return iris as a frame with a column of categories, and with missing values."""
    X, y = load_frame()
    X = X.copy()
    X["origin"] = np.array(["north", "south", None, "west"], dtype=object)[np.arange(len(X)) % 4]
    X.iloc[::5, 0], X.iloc[1::7, 2] = np.nan, np.nan
    X.loc[X.index[:6], "origin"] = "a rare one"
    return X, y


def list_models():
    """Yield the name, the model and the table of each golden model."""
    paper = {"preset": "paper", "beta": 0.8, "random_state": 0}
    plain = {"contrast": "standardized", "random_state": 0}  # trees of floating point numbers
    yield "tree", LHTClassifier(), load_flowers()
    yield "tree_beta_raw", LHTClassifier(beta=0.7, standardize=False), load_flowers()
    yield "tree_two_classes", LHTClassifier(max_depth=3), load_flowers(2, [False, True])
    yield "tree_one_class", LHTClassifier(), load_flowers(1, [2.0])
    yield "tree_names", LHTClassifier(gamma=1), load_frame()
    yield "forest", LHForestClassifier(2, **plain, max_depth=4), load_flowers()
    yield "forest_two_classes", LHForestClassifier(3, **plain), load_flowers(2, [-1, 7])
    yield "forest_paper", LHForestClassifier(3, **paper), load_frame()
    yield "forest_margin", LHForestClassifier(2, voting="margin", **paper), load_flowers()
    margin = LHForestClassifier(3, voting="margin", bootstrap=True, **paper)
    yield "forest_margin_two_classes", margin, load_flowers(2, ["no", "yes"])
    yield "tree_mixed", LHTClassifier(max_categories=4), load_mixed()
    mixed = LHForestClassifier(2, **plain, max_categories=3, max_depth=4)
    yield "forest_mixed", mixed, load_mixed()
    calibrated = LHForestClassifier(12, **plain, max_samples=0.3, max_depth=2)
    calibrated.set_params(calibration="oob", oob_score=True, shrinkage=1.0)
    yield "forest_calibrated", calibrated, load_flowers(2, ["no", "yes"])
    yield "shares", LHForestClassifier(3, random_state=0), load_flowers()
    yield "shares_one_class", LHForestClassifier(2, random_state=0), load_flowers(1, [2.0])
    deep = LHForestClassifier(3, bootstrap=True, calibration=None, random_state=0)
    yield "shares_not_calibrated", deep, load_frame()
    judged = LHForestClassifier(12, max_samples=0.3, oob_score=True, random_state=0)
    judged.set_params(max_depth=2, shrinkage=1.0, class_weight="balanced_subsample")
    yield "shares_judged", judged, load_flowers(2, ["no", "yes"])
    X, y = load_mixed()
    of_codes = LHForestClassifier(5, max_categories=3, max_samples=0.6, random_state=0)
    of_codes.set_params(monotonic_cst={"petal length (cm)": 1}, n_hyperplanes=6)
    yield "shares_mixed", of_codes, (X, y == "virginica")
    boosted = {"n_estimators": 5, "max_leaf_nodes": 6, "n_hyperplanes": 3, "random_state": 0}
    yield "boost", LHBoostClassifier(**boosted), load_flowers(2, ["no", "yes"])
    yield "boost_mixed", LHBoostClassifier(**boosted, max_categories=2), (X, y == "virginica")
    lengths = X["petal length (cm)"].fillna(0).to_numpy()
    yield "boost_many_classes", LHBoostClassifier(**boosted), load_frame()
    stopped = LHBoostRegressor(**boosted, early_stopping=True)
    yield "boost_numbers", stopped, (X.drop(columns="petal length (cm)"), lengths)
    counts = LHBoostRegressor("poisson", **boosted)
    yield "boost_poisson", counts, (X.drop(columns="petal length (cm)"), np.floor(lengths))
    grown = LHForestRegressor(4, max_depth=5, max_samples=0.6, shrinkage=2.0, random_state=0)
    yield "forest_numbers", grown, (X.drop(columns="petal length (cm)"), lengths)
    quantiles = LHBoostRegressor("quantile", quantile=[0.1, 0.5, 0.9], **boosted)
    yield "boost_quantiles", quantiles, (X.drop(columns="petal length (cm)"), lengths)


def make(name, model, table):
    """Write a model and its predictions for some rows."""
    X, y = table
    model.fit(X, y)
    rows = X.iloc[::7][:N_ROWS] if hasattr(X, "iloc") else X[::7][:N_ROWS]
    listed = rows.to_numpy().tolist() if hasattr(X, "iloc") else rows.tolist()
    predictions = {
        "columns": list(X.columns) if hasattr(X, "columns") else None,
        "rows": [[None if value != value else value for value in row] for row in listed],
        "labels": model.predict(rows).tolist(),
    }
    if hasattr(model, "predict_proba"):
        predictions["probabilities"] = model.predict_proba(rows).tolist()
    lhtree.save(model, FOLDER / f"{name}.safetensors")
    text = json.dumps(predictions, indent=None, ensure_ascii=True)
    (FOLDER / f"{name}.json").write_text(text.replace('], "', '],\n"') + "\n", encoding="utf-8")


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="only list the models")
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name, model, table in list_models():
        exists = (FOLDER / f"{name}.safetensors").exists()
        print(f"{name:28} {'exists' if exists else 'is missing'}")
        if not exists and not arguments.list:
            make(name, model, table)


if __name__ == "__main__":
    main()
