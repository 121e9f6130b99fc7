"""Threads, interrupts, and trees as deep as they get."""

import os
import pickle
import platform
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from lhtree import LHForestClassifier, LHTClassifier, check_forest
from lhtree.estimators.params import count_threads


@pytest.fixture(scope="module", params=["paper", "accurate"])
def long_fit(request):
    """Rows and a model whose fit takes many seconds."""
    rng = np.random.default_rng(0)
    X, preset = rng.normal(size=(20_000, 100)), request.param
    return LHForestClassifier(200, preset=preset, random_state=0), X, rng.integers(0, 3, len(X))


def test_models_fit_and_predict_from_several_threads_at_once(blobs):
    X, y = blobs
    expected = LHForestClassifier(10, random_state=0).fit(X, y).predict_proba(X)

    def run(n_jobs):
        return LHForestClassifier(10, random_state=0, n_jobs=n_jobs).fit(X, y).predict_proba(X)

    with ThreadPoolExecutor(6) as pool:
        for proba in pool.map(run, [1, 2, 3] * 8):
            assert_array_equal(proba, expected)


def test_one_model_predicts_for_several_threads_at_once(blobs):
    X, y = blobs
    rows = np.tile(X, (10, 1))
    model = LHForestClassifier(10, random_state=0, n_jobs=2).fit(X, y)
    expected = model.predict_proba(rows)
    with ThreadPoolExecutor(4) as pool:
        for proba in pool.map(lambda _: model.predict_proba(rows), range(12)):
            assert_array_equal(proba, expected)


def test_other_python_threads_run_during_a_fit(long_fit):
    model, X, y = long_fit
    n_ticks = 0
    is_done = threading.Event()

    def tick():
        nonlocal n_ticks
        while not is_done.wait(0.005):
            n_ticks += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.monotonic()
    clone(model).set_params(n_estimators=4).fit(X, y)
    elapsed = time.monotonic() - start
    is_done.set()
    ticker.join()
    assert n_ticks > elapsed / 0.005 / 10  # with the lock held there would be next to none


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_fit_at_once_and_leaves_the_model_alone(long_fit, n_jobs):
    model, X, y = long_fit
    model = clone(model).set_params(n_jobs=n_jobs)
    sent = []

    def interrupt():
        time.sleep(0.5)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    delay = time.monotonic() - sent[0]
    killer.join()
    assert delay < 1.0  # measured below 0.1 s; the margin is for a busy machine
    assert not hasattr(model, "forest_")


def test_an_exception_in_a_callback_ends_the_fit(long_fit):
    model, X, y = long_fit
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")

    class Failing:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            if context.task_name == "estimator":
                raise RuntimeError("no more")

        def on_fit_task_end(self, estimator, context):
            pass

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="no more"):
        clone(model).set_callbacks(Failing()).fit(X, y)
    assert time.monotonic() - start < 20  # the whole fit takes minutes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_fit_works_after_a_fork():
    code = """
        import os, numpy as np
        from lhtree import LHForestClassifier
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(500, 4)), rng.integers(0, 3, 500)
        model = LHForestClassifier(5, n_jobs=2, random_state=0).fit(X, y)
        pid = os.fork()
        again = LHForestClassifier(5, n_jobs=2, random_state=0).fit(X, y)
        ok = np.array_equal(model.predict_proba(X), again.predict_proba(X))
        if pid == 0:
            os._exit(0 if ok else 1)
        assert ok and os.waitpid(pid, 0)[1] == 0
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


@pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("gcc") is None,
    reason="needs gcc on x86-64 to switch the mode",
)
def test_flushed_denormals_change_nothing(tmp_path):
    # Other libraries switch a process to flush tiny numbers to zero: next(0) is then 0.
    source = tmp_path / "flush.c"
    source.write_text(
        "#include <xmmintrin.h>\nvoid on(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }\n"
    )
    library = tmp_path / "flush.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    code = f"""
        import ctypes, numpy as np
        from lhtree import LHTClassifier
        X = np.array([-3.0, -2, -1, 0, 0, 0, 0, 5, 6, 7, 0])[:, np.newaxis]
        y = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
        before = LHTClassifier(standardize=False).fit(X, y)
        ctypes.CDLL({str(library)!r}).on()
        after = LHTClassifier(standardize=False).fit(X, y)
        assert np.array_equal(before.forest_.left, after.forest_.left)
        assert np.array_equal(before.apply(X), after.apply(X))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


def test_a_chain_of_20000_splits():
    # Alternating labels on a line: every split cuts one row off. Squares keep the class
    # means apart; evenly spaced rows would have none between them.
    n = 20_001
    X = np.arange(n, dtype=float)[:, np.newaxis] ** 2
    y = np.arange(n) % 2
    model = LHTClassifier(gamma=1).fit(X, y)
    check_forest(model.forest_)
    assert model.get_depth() == 20_000
    assert model.trees_[0].depth == 20_000
    assert_array_equal(model.predict(X[::100]), y[::100])
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.apply(X[:50]), model.apply(X[:50]))
    assert clone(model).gamma == 1
    indicator, _ = model.decision_path(X[[0, 1, n // 2, n - 1]])
    assert indicator.sum() > 20_000


def test_no_number_of_threads_means_all_cores_but_one_in_a_worker():
    assert count_threads(None) == joblib.cpu_count()
    for backend in ("loky", "threading"):
        numbers = joblib.Parallel(2, backend=backend)(
            joblib.delayed(count_threads)(n) for n in (None, None)
        )
        assert numbers == [1, 1]
    with joblib.parallel_config(n_jobs=3):
        assert count_threads(None) == 3


def test_a_task_of_dask_uses_one_thread():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert count_threads(None) == joblib.cpu_count()
        assert client.submit(count_threads, None).result() == 1
