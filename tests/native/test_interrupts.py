"""Ctrl-C ends every long call of the exact engine within a fraction of its time."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from scipy.sparse import csr_array

from exact import boosting
from lhtree.training.boosting_rows import encode_rows, learn_rows
from native.test_exact_engine import boost, make_case

OPTIONS = {"wants_z": True, "n_threads": 1}


def interrupt_after(seconds, call):
    """Return the seconds from Ctrl-C, so long after the start of a call, to its end."""
    sent, ended = [], []

    def interrupt():
        time.sleep(seconds)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def call_and_wait():
        try:
            call()
        finally:
            ended.append(time.monotonic())
            killer.join()

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        call_and_wait()
    return ended[0] - sent[0]


def check_delays(call):
    """Demand that Ctrl-C is heard early in a call, and late."""
    start = time.monotonic()
    call()
    whole = time.monotonic() - start
    for share in (0.1, 0.4):
        # On a busy machine some of them take long.
        delays = (interrupt_after(share * whole, call) for _ in range(5))
        assert any(delay < max(0.15, whole / 4) for delay in delays)


def learn(X, weight=None):
    n_codes = np.zeros(X.shape[1], dtype=np.int32)
    return learn_rows(X, weight, None, n_codes, max_bins=255, **OPTIONS)


def make_sparse(n, d, density):
    """Return a sparse table whose entries lie next to each other in each row."""
    rng, k = np.random.default_rng(0), int(d * density)
    start = rng.integers(0, d - k, n)[:, None]
    column = (start + np.arange(k)).ravel().astype(np.int32)
    return csr_array((rng.normal(size=n * k), column, np.arange(n + 1) * k), (n, d))


@pytest.mark.parametrize("n_columns", [3, 60])
def test_ctrl_c_ends_the_learning_of_columns(n_columns):
    X = np.random.default_rng(0).normal(size=(6_000_000 // n_columns, n_columns))
    check_delays(lambda: learn(X))


def test_ctrl_c_ends_the_learning_of_columns_of_weighted_rows():
    X = np.random.default_rng(0).normal(size=(1_500_000, 2))
    weight = np.arange(len(X)) % 3 + 1
    check_delays(lambda: learn(X, weight))


def test_ctrl_c_ends_the_encoding_of_rows():
    X = np.random.default_rng(0).normal(size=(200_000, 40))
    columns, _ = learn(X[:1000])
    check_delays(lambda: encode_rows(X, columns, **OPTIONS))


def test_ctrl_c_ends_the_learning_and_encoding_of_sparse_columns():
    X = make_sparse(150_000, 400, 0.1)
    check_delays(lambda: learn(X))
    columns, _ = learn(X[:1000])
    check_delays(lambda: encode_rows(X, columns, **OPTIONS))


@pytest.mark.parametrize("n_hyperplanes", [0, 3])
def test_ctrl_c_ends_the_growth_of_a_large_tree(n_hyperplanes):
    X = np.random.default_rng(0).normal(size=(100_000, 30))
    plan = boosting.Plan(
        n_rounds=1, n_hyperplanes=n_hyperplanes, max_terms=9, max_leaf_nodes=400, min_weight=0
    )
    table = X, np.zeros(30, dtype=np.int32), None
    case = make_case(table, ("squared_error", 1), plan, 0)
    check_delays(lambda: boost(case))
