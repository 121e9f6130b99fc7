"""Small tables, the folder of data sets, figures, and the Hypothesis profile."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import make_classification

os.environ.setdefault("MPLBACKEND", "Agg")  # draw without a screen

# Programs that run in the background may ignore Ctrl-C, and hand that down to what they
# start; the tests of interrupts need the usual way.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("lhtree", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "lhtree"))


@pytest.fixture(scope="session")
def load_table():
    """Return a reader of the paper's data sets, which skips where they are absent."""
    pd = pytest.importorskip("pandas")
    folder = os.environ.get("LHTREE_DATA")

    def load(name):
        if not folder:
            pytest.skip("LHTREE_DATA does not name the folder of the paper's data sets")
        path = Path(folder) / f"{name}.parquet"
        if not path.exists():
            pytest.skip(f"{path.name} is not in the folder that LHTREE_DATA names")
        return pd.read_parquet(path)

    return load


@pytest.fixture(autouse=True)
def _close_figures():
    """Close what a test drew: matplotlib warns of many open figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def blobs():
    """Three overlapping classes, 300 rows, 6 columns of very different units."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    X = rng.normal(size=(300, 6)) + y[:, np.newaxis] * [1.0, -0.5, 0.2, 0, 0, 0.8]
    return X * [1, 1e3, 1e-3, 1, 10, 1] + [0, 1e4, 0, 0, -5, 0], y


@pytest.fixture(scope="session")
def noisy_labels():
    """Return rows of which a third has a random label."""
    return make_classification(600, 8, n_informative=4, flip_y=0.35, random_state=0)


@pytest.fixture(scope="session")
def three_classes():
    """Return rows of three classes."""
    return make_classification(400, 10, n_informative=5, n_classes=3, random_state=1)
