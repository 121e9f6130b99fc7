"""Classifiers of a cluster in use: collections, predictions, bad input, workers that die."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import lhtree
from old_engine import fit_old_forest

pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

from lhtree import dask as ld  # noqa: E402
from lhtree.dask import estimators, rounds, tasks  # noqa: E402

PARAMETERS = {"n_estimators": 2, "max_depth": 2, "random_state": 0, "standardize": False}


# distributed warns on a slow disk or a busy machine, which is not a failure.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:distributed")


@pytest.fixture(scope="module")
def client():
    """One worker in this process: what is tested here does not depend on processes."""
    with distributed.Client(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as client:
        yield client


@pytest.fixture(scope="module")
def table():
    """Integers with three classes."""
    rng = np.random.default_rng(0)
    X = rng.integers(-5, 6, (240, 5)).astype(float)
    return X, (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] > 3)


def spread(*arrays, size=60):
    """Put arrays on the cluster."""
    return [da.from_array(a, (size, -1) if a.ndim == 2 else size) for a in arrays]


@pytest.fixture(scope="module")
def fitted(client, table):
    """Fit a forest on the cluster and one locally."""
    model = ld.LHForestClassifier(row_limit=50, **PARAMETERS).fit(*spread(*table))
    return model, fit_old_forest(PARAMETERS, *table)


def test_defaults_are_those_of_the_local_classifiers():
    for name in ("LHTClassifier", "LHForestClassifier"):
        local = getattr(lhtree, name)().get_params()
        assert getattr(ld, name)().get_params() == {**local, "row_limit": None}
    assert clone(ld.LHForestClassifier(7, row_limit=3)).get_params()["n_estimators"] == 7


@pytest.mark.parametrize("method", ["predict", "predict_proba", "apply"])
def test_predictions_are_lazy_and_those_of_the_local_model(fitted, table, method):
    model, local = fitted
    X = np.concatenate([table[0], table[0][:1]])
    lazy = getattr(model, method)(da.from_array(X, ((200, 0, 41), -1)))
    assert isinstance(lazy, da.Array)
    expected = getattr(local, method)(X)
    assert lazy.shape == expected.shape
    assert lazy.dtype == expected.dtype
    np.testing.assert_array_equal(lazy.compute(), expected)
    np.testing.assert_array_equal(getattr(model, method)(X), expected)


def test_dataframes_give_the_model_and_the_predictions_of_arrays(client, fitted, table):
    X, y = table
    names = list("abcde")
    frame = dd.from_pandas(pd.DataFrame(X, columns=names), npartitions=3)
    label = dd.from_pandas(pd.Series(y), npartitions=3)
    model = ld.LHForestClassifier(row_limit=50, **PARAMETERS).fit(frame, label)
    local = fit_old_forest(PARAMETERS, pd.DataFrame(X, columns=names), y)
    np.testing.assert_array_equal(model.forest_.threshold, local.forest_.threshold)
    assert list(model.feature_names_in_) == names
    assert model.to_local().column_names_ == local.column_names_
    proba = model.predict_proba(frame)
    assert list(proba.columns) == [0, 1, 2]
    in_memory = frame.compute()
    np.testing.assert_array_equal(proba.compute(), local.predict_proba(in_memory))
    predicted = model.predict(frame).compute()
    assert predicted.index.equals(in_memory.index)
    np.testing.assert_array_equal(predicted, local.predict(in_memory))
    assert model.score(frame, label) == local.score(in_memory, y)


def test_it_works_in_a_pipeline_after_preprocessing(client, table):
    X, y = spread(*table)
    pipeline = make_pipeline(
        FunctionTransformer(lambda X: X * 2.0), ld.LHTClassifier(row_limit=50, max_depth=2)
    ).fit(X, y)
    local = lhtree.LHTClassifier(max_depth=2).fit(2 * table[0], table[1])
    np.testing.assert_array_equal(pipeline.predict(X).compute(), local.predict(2 * table[0]))


def test_a_single_class_is_always_predicted(client, table):
    X, y = spread(table[0], np.zeros(len(table[0]), dtype=int))
    model = ld.LHTClassifier().fit(X, y)
    assert set(model.predict(X).compute()) == {0}


def test_a_table_that_does_not_fit_in_memory_stays_lazy(client, table, monkeypatch):
    def refuse(self, *collections):
        raise AssertionError("the table was held")

    monkeypatch.setattr("lhtree.dask.cluster.HELD_FRACTION", 0.0)
    monkeypatch.setattr(distributed.Client, "persist", refuse)
    model = ld.LHForestClassifier(row_limit=50, **PARAMETERS).fit(*spread(*table, size=120))
    local = fit_old_forest(PARAMETERS, *table)
    np.testing.assert_array_equal(model.forest_.threshold, local.forest_.threshold)


def make_bad(table):
    """Return calls of fit that must be refused, and what the sentence says."""
    X, y = spread(*table)
    frame = pd.DataFrame(table[0], columns=list("abcde"))
    holes = table[0].copy()
    holes[70, 3] = np.nan
    words = dd.from_pandas(frame.assign(d="x"), npartitions=2)
    label = dd.from_pandas(pd.Series(table[1]), npartitions=2)
    reals = spread(table[0][:, 0] + 0.5)[0]
    unknown = dd.from_pandas(frame, npartitions=2).values
    weight = np.ones(len(table[1]))
    return {
        "in memory": (table, {}, TypeError, "X must be a dask array or dask dataframe"),
        "label in memory": ((X, table[1]), {}, TypeError, "y must be a dask array"),
        "unknown chunks": ((unknown, y), {}, ValueError, "compute_chunk_sizes"),
        "other partitions": (
            (X, y.rechunk(100)), {}, ValueError, "X and y must have the same partitions",
        ),
        "missing value": ((spread(holes)[0], y), {}, ValueError, "missing values in column 3"),
        "infinite value": (
            (spread(np.where(np.isnan(holes), np.inf, holes))[0], y),
            {}, ValueError, "infinite values in column 3",
        ),
        "words": (
            (words, label), {}, TypeError, "column 'd'",
        ),
        "dtype": ((X.astype("complex128"), y), {}, TypeError, "X must hold numbers"),
        "one dimension": ((X[:, 0], y), {}, ValueError, "two dimensions"),
        "label missing": (
            (X, spread(np.where(table[1] == 0, np.nan, 1.0))[0]), {}, ValueError, "missing labels",
        ),
        "real labels": ((X, reals), {}, ValueError, "Unknown label type"),
        "negative weight": ((X, y, spread(-weight)[0]), {}, ValueError, "not negative"),
        "no weight": ((X, y, spread(0 * weight)[0]), {}, ValueError, "zero for every row"),
        "warm start": ((X, y), {"warm_start": True}, ValueError, "warm_start=True is not"),
        "oob": ((X, y), {"oob_score": True}, ValueError, "oob_score=True is not"),
        "calibration": (
            (X, y), {"calibration": "oob"}, ValueError, "calibration='oob' is not",
        ),
        "categories": (
            (X, y), {"categorical_features": [0]}, ValueError, "categorical_features=.* is not",
        ),
        "row limit": ((X, y), {"row_limit": 0}, ValueError, "row_limit must be"),
        "leaf": (
            (X, y), {"min_samples_leaf": 5, "row_limit": 50}, ValueError, "min_samples_leaf needs",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("kind", make_bad((np.zeros((240, 5)), np.zeros(240, int))))
def test_bad_input_gets_a_clear_sentence(client, table, kind):
    arguments, parameters, error, message = make_bad(table)[kind]
    model = ld.LHForestClassifier(**{**PARAMETERS, **parameters})
    with pytest.raises(error, match=message):
        model.fit(*arguments)
    assert not hasattr(model, "forest_")
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("name", sorted(estimators.REFUSED))
def test_parameters_without_support_are_refused_before_any_task_runs(
    client, table, name, monkeypatch
):
    values = {"warm_start": True, "oob_score": True, "calibration": "oob"}
    monkeypatch.setattr(estimators, "Cluster", None)
    model = ld.LHForestClassifier(**{name: values.get(name, [0])})
    with pytest.raises(
        ValueError, match=f"{name}=.* is not supported on a cluster; leave it"
    ) as info:
        model.fit(*spread(*table))
    assert str(info.value).count(".") == 1


def test_auto_adds_the_estimators_of_a_local_fit(client, table):
    parameters = {
        "n_estimators": "auto", "max_estimators": 70, "max_depth": 2, "random_state": 0,
        "standardize": False,
    }  # fmt: skip
    X, y = table[0][:120], table[1][:120]
    local = fit_old_forest(parameters, X, y)
    model = ld.LHForestClassifier(**parameters).fit(*spread(X, y))
    assert model.n_estimators_ == local.n_estimators_ > 20
    assert model.shrinkage_ == local.shrinkage_
    np.testing.assert_array_equal(model.forest_.threshold, local.forest_.threshold)


def test_small_trees_are_grown_where_their_rows_fit_on_one_worker(client, table):
    parameters = {**PARAMETERS, "max_depth": None, "min_samples_leaf": 5, "max_leaf_nodes": 6}
    model = ld.LHForestClassifier(**parameters).fit(*spread(*table))
    local = fit_old_forest(parameters, *table)
    np.testing.assert_array_equal(model.forest_.threshold, local.forest_.threshold)


def test_the_survey_of_a_partition_holds_no_row():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(5.0, 1.0, (30, 4)), rng.integers(0, 3, 30).astype(float)
    survey = tasks.survey(X, np.arange(30) % 3, weight)
    by_column = [np.asarray(value) for value in survey if np.shape(value) == (4,)]
    assert len(by_column) == 3  # least, largest and mean values
    assert not any((value == X).all(axis=1).any() for value in by_column)
    np.testing.assert_allclose(survey.mean, np.average(X, axis=0, weights=weight))


def test_a_fit_without_a_client_is_refused(table):
    code = (
        "import dask.array as da, lhtree.dask as ld\n"
        "X = da.zeros((4, 2), chunks=(2, 2)); y = da.zeros(4, chunks=2, dtype=int)\n"
        "try:\n    ld.LHTClassifier().fit(X, y)\n"
        "except ValueError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "there is no client" in run.stdout


def test_a_fit_that_is_stopped_leaves_nothing_on_the_cluster(client, table, monkeypatch):
    def stop(self, splits):
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds.Batch, "_choose", stop)
    model = ld.LHForestClassifier(row_limit=50, **PARAMETERS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*spread(*table))
    assert not hasattr(model, "forest_")
    deadline = time.monotonic() + 20
    scheduler = client.cluster.scheduler
    while scheduler.tasks and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not scheduler.tasks


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies_changes_no_bit(table, monkeypatch):
    X, y = table
    local = fit_old_forest(PARAMETERS, X, y)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        split, n_kills = rounds.Batch._split, []

        def kill_and_split(self, *arguments):
            if not n_kills:
                n_kills.append(1)
                pids = client.run(os.getpid)
                os.kill(next(iter(pids.values())), signal.SIGKILL)
            return split(self, *arguments)

        monkeypatch.setattr(rounds.Batch, "_split", kill_and_split)
        model = ld.LHForestClassifier(row_limit=50, **PARAMETERS)
        timer = threading.Timer(120, cluster.close)  # never hang
        timer.start()
        model.fit(*spread(X, y))
        timer.cancel()
    assert n_kills
    np.testing.assert_array_equal(model.forest_.threshold, local.forest_.threshold)
    np.testing.assert_array_equal(model.forest_.weight, local.forest_.weight)


@pytest.mark.filterwarnings("ignore")
def test_partitions_that_one_worker_holds_give_the_same_model(table):
    X, y = table
    local = fit_old_forest(PARAMETERS, X, y)
    with distributed.Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as client:
        first = min(client.nthreads())
        held = [client.persist(some, workers=[first]) for some in spread(X, y, size=20)]
        model = ld.LHForestClassifier(row_limit=50, **PARAMETERS).fit(*held)
    np.testing.assert_array_equal(model.forest_.threshold, local.forest_.threshold)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_without_workers_ends_the_fit_in_time(table, monkeypatch):
    monkeypatch.setattr("lhtree.dask.cluster.SECONDS_BETWEEN_LOOKS", 0.5)
    monkeypatch.setattr("lhtree.dask.cluster.SECONDS_WITHOUT_WORKERS", 1.0)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        split, lost = rounds.Batch._split, []

        async def stay_dead():
            """Start no worker in place of the one that died."""

        def kill_all_and_split(self, *arguments):
            if not lost:
                pids = client.run(os.getpid).values()
                for nanny in cluster.workers.values():
                    nanny.instantiate = stay_dead
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                lost.append(time.monotonic())
            return split(self, *arguments)

        monkeypatch.setattr(rounds.Batch, "_split", kill_all_and_split)
        model = ld.LHForestClassifier(row_limit=50, **PARAMETERS)
        timer = threading.Timer(120, cluster.close)  # never hang
        timer.start()
        with pytest.raises(RuntimeError, match="no worker for 1 seconds; fit cannot go on"):
            model.fit(*spread(*table))
        timer.cancel()
        assert time.monotonic() - lost[0] < 60
    assert not hasattr(model, "forest_")


def test_workers_are_seen_while_the_client_renews_its_copy(client, table, monkeypatch):
    monkeypatch.setattr(client, "scheduler_info", lambda **_: {"workers": {}})
    model = ld.LHForestClassifier(row_limit=50, **PARAMETERS).fit(*spread(*table))
    assert model.growth_["n_rounds"] > 0
