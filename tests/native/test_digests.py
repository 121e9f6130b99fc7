"""Digests of boosted models: the same on every platform, instruction set and version of NumPy."""

import hashlib
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from lhtree import LHBoostClassifier, LHBoostRegressor

FILE = Path(__file__).with_name("digests.json")


def make_numbers(n, seed):
    """Return integers from 0 to 2**32 - 1 by multiplications alone, whatever the library."""
    k = np.arange(1, n + 1, dtype=np.uint64) + np.uint64(seed << 32)
    k = (k ^ (k >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    k = (k ^ (k >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (k >> np.uint64(32)).astype(np.int64)


def make_table(kind, seed):
    """Return rows, the columns of categories among them, and numbers to predict."""
    n, d = 600, 6
    X = make_numbers(n * d, seed).reshape(n, d) / 2.0**31 - 1.0
    y = X[:, 0] * X[:, 1] + X[:, 2] + X[:, 3] * 0.5
    categories = None
    if kind == "gaps":
        X[make_numbers(n * d, seed + 100).reshape(n, d) % 10 == 0] = np.nan
    elif kind == "ties":
        X = np.floor(X * 3.0)
    elif kind == "wide":
        X = X * np.array([1e-300, 1e-3, 1.0, 1e6, 1e250, 1e-9])
    elif kind == "categories":
        X[:, 4:] = make_numbers(2 * n, seed + 200).reshape(n, 2) % 9
        categories, y = [4, 5], y + X[:, 4] % 3
    elif kind == "sparse":
        X = csr_array(np.where(X > 0.3, X, 0.0))
    return X, categories, y


KINDS = ("plain", "gaps", "ties", "wide", "categories", "sparse")


def list_cases():
    """Return 75 fits: kinds of tables, of models and of weights."""
    weightings = ("none", "whole", "fractional")
    cases = list(product(KINDS, ("numbers", "classes", "many"), (0, 3), weightings))
    return [cases[i * len(cases) // 75] for i in range(75)]


def fit(kind, target, n_hyperplanes, weighting):
    """Return a small model; of many classes, one that held rows out."""
    X, categories, y = make_table(kind, 7)
    weight = {
        "none": None,
        "whole": make_numbers(len(y), 300) % 4,
        "fractional": (1 + make_numbers(len(y), 400) % 1000) / 512.0,
    }[weighting]
    model = (LHBoostRegressor if target == "numbers" else LHBoostClassifier)(
        n_estimators=5,
        early_stopping=target == "many",
        refit=False,
        max_leaf_nodes=12,
        l2_regularization=0.3,
        n_hyperplanes=n_hyperplanes,
        categorical_features=categories,
        random_state=0,
    )
    bounds = {"numbers": None, "classes": [0.0], "many": [-1.0, -0.3, 0.3, 1.0]}[target]
    return model.fit(X, y if bounds is None else np.digitize(y, bounds), sample_weight=weight)


def compute_digest(case):
    """Return the digest of the arrays of a model."""
    forest = fit(*case).forest_
    digest = hashlib.sha256()
    for name in ("base", "tree_start", "left", "column", "missing_left", "value", "weight"):
        digest.update(np.ascontiguousarray(getattr(forest, name)).astype("<i8").tobytes())
    for name in ("term_start", "feature", "coefficient", "fill", "cut"):
        digest.update(np.ascontiguousarray(getattr(forest, name)).astype("<i8").tobytes())
    digest.update(forest.codes.astype("<u8").tobytes())
    digest.update(forest.threshold.astype("<f8").tobytes())
    return digest.hexdigest()[:16]


def compute_all():
    """Return the digests of all cases, by name."""
    return {"-".join(map(str, case)): compute_digest(case) for case in list_cases()}


def test_models_have_the_committed_digests():
    assert len(list_cases()) == 75
    assert compute_all() == json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("instructions", ["baseline", "avx2"])
def test_other_instructions_give_the_same_models(instructions):
    run = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | {"LHTREE_INSTRUCTIONS": instructions},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout) == json.loads(FILE.read_text(encoding="utf-8"))


if __name__ == "__main__":  # after a change of the definition: python FILE > digests.json
    print(json.dumps(compute_all(), indent=1))
