"""Malformed input that could be misread, or end the process."""

import datetime
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import lhtree
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.data.columns import DefaultNames
from lhtree.explain import explain_rows, nearest_counterfactual

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(60, 6)) * (RNG.random((60, 6)) < 0.5)
LABEL = (TABLE[:, 0] + TABLE[:, 1] > 0).astype(int)
COMPRESSED = [sp.csr_array, sp.csc_array, sp.bsr_array, sp.csr_matrix, sp.csc_matrix]


def spoil(array, part, place, value):
    """Return a copy of a sparse array with one number of one part changed."""
    spoiled = array.copy()
    getattr(spoiled, part)[place] = value
    return spoiled


def list_malformed():
    """Yield sparse arrays whose parts do not fit each other."""
    for kind in COMPRESSED:
        whole = kind(TABLE)
        for value in (10**8, -1, -(10**8)):
            yield f"{kind.__name__} index {value}", spoil(whole, "indices", 3, value)
            yield f"{kind.__name__} indptr {value}", spoil(whole, "indptr", 1, value)
        yield f"{kind.__name__} start", spoil(whole, "indptr", 0, 1)
        yield f"{kind.__name__} end", spoil(whole, "indptr", -1, 10**8)
        for part in ("indices", "indptr", "data"):
            spoiled = whole.copy()
            setattr(spoiled, part, getattr(whole, part)[:-1])
            yield f"{kind.__name__} short {part}", spoiled
        spoiled = whole.copy()
        spoiled.indices = whole.indices + 0.5
        yield f"{kind.__name__} fractions", spoiled
    for part in ("row", "col"):
        for value in (10**8, -1):
            yield f"coo {part} {value}", spoil(sp.coo_matrix(TABLE), part, 0, value)
    lists = sp.lil_array(TABLE)
    lists.rows[0][0] = 10**8
    yield "lil", lists
    diagonals = sp.dia_array(TABLE)
    diagonals.offsets = diagonals.offsets[:-1]
    yield "dia", diagonals
    for name, value in (("far", 2**62), ("twice", 0)):
        diagonals = sp.dia_array(TABLE)
        diagonals.offsets = np.full(len(diagonals.offsets), value)
        yield f"dia {name}", diagonals
    masked = sp.csr_array(TABLE)
    masked.data = np.ma.array(masked.data, mask=masked.data > 1)
    yield "masked", masked
    dates = sp.csr_array(TABLE)
    dates.data = dates.data.astype("m8[s]")
    yield "time differences", dates
    flat = sp.coo_array(np.arange(6.0))
    yield "one dimension", flat


MALFORMED = dict(list_malformed())


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_sparse_arrays_are_refused(name):
    X = MALFORMED[name]
    model = LHTClassifier().fit(TABLE, LABEL)
    before = dict(vars(model))
    for call in (model.fit, lambda X, y: model.predict(X), lambda X, y: explain_rows(model, X)):
        with pytest.raises(ValueError, match="sparse"):
            call(X, LABEL)
    assert vars(model) == before


@pytest.mark.parametrize(
    "kind", [*COMPRESSED, sp.coo_array, sp.lil_array, sp.dok_array, sp.dia_array]
)
def test_all_formats_of_scipy_are_read(kind):
    assert_array_equal(
        LHTClassifier().fit(kind(TABLE), LABEL).predict_proba(kind(TABLE)),
        LHTClassifier().fit(sp.csr_array(TABLE), LABEL).predict_proba(sp.csr_array(TABLE)),
    )


def make_wide(n_columns=10**9):
    """Return four rows with four values, in the first and the last of many columns."""
    column = [0, n_columns - 1, 0, 7]
    return sp.csr_array(([1.0, 2.0, 3.0, 4.0], column, [0, 1, 2, 3, 4]), shape=(4, n_columns))


@pytest.mark.parametrize(
    "model", [LHTClassifier(), LHForestClassifier(3, random_state=0, max_samples=1.0)], ids=str
)
def test_columns_that_never_occur_take_no_part(model, tmp_path):
    X, y = make_wide(), [0, 1, 0, 1]
    narrow = sp.csr_array(([1.0, 2.0, 3.0, 4.0], [0, 2, 0, 1], [0, 1, 2, 3, 4]), shape=(4, 3))
    wanted = model.fit(narrow, y).predict_proba(narrow)
    model.fit(X, y)
    assert_array_equal(model.predict_proba(X), wanted)
    assert model.n_features_in_ == 10**9
    assert model.column_names_ == ["x0", "x7", "x999999999"]
    lhtree.save(model, tmp_path / "model.safetensors")
    assert_array_equal(lhtree.load(tmp_path / "model.safetensors").predict_proba(X), wanted)
    other = sp.csr_array(([5.0, 1.0], [12345, 0], [0, 2]), shape=(1, 10**9))
    assert_array_equal(model.predict(other), [0])


def test_a_wide_libsvm_file_needs_little_memory(tmp_path):
    (tmp_path / "wide.libsvm").write_text("0 1:1\n1 2000000000:1\n0 1:2\n1 5:1\n" * 5)
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (6 << 30,) * 2)\n"
        "from lhtree.cli import main; sys.exit(main())"
    )
    for command in (
        ["fit", "wide.libsvm", "-o", "m.safetensors", "--jobs", "1"],
        ["predict", "m.safetensors", "wide.libsvm"],
        ["info", "m.safetensors"],
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *command],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_default_names_are_those_of_a_list():
    names, wanted = DefaultNames(12), [f"x{j}" for j in range(12)]
    assert list(names) == wanted
    assert names[3:5] == wanted[3:5]
    assert names.index("x11") == 11
    for absent in ("x12", "x01", "x", "11", "x-1", "x²", 3):
        assert absent not in names


# ---- masks


def test_masked_values_count_as_missing():
    masked = np.ma.array(TABLE, mask=TABLE > 1)
    gaps = np.where(TABLE > 1, np.nan, TABLE)
    model = LHForestClassifier(5, random_state=0)
    wanted = model.fit(gaps, LABEL).predict_proba(gaps)
    assert_array_equal(model.fit(masked, LABEL).predict_proba(masked), wanted)
    assert_array_equal(model.predict_proba(list(masked)), wanted)
    assert_array_equal(explain_rows(model, masked).score, explain_rows(model, gaps).score)
    whole = np.ma.array((10 * TABLE).astype(int), mask=TABLE > 1)
    ints = np.where(TABLE > 1, np.nan, (10 * TABLE).astype(int))
    assert_array_equal(
        model.fit(whole, LABEL).predict_proba(whole), model.fit(ints, LABEL).predict_proba(ints)
    )


def test_masked_categories_count_as_missing():
    text = np.array(["a", "b", "c"] * 20, dtype=object)[:, np.newaxis]
    masked = np.ma.array(text, mask=text == "c")
    model = LHTClassifier(categorical_features=[0]).fit(masked, LABEL)
    assert model.column_names_ == ["x0=a", "x0=b"]


@pytest.mark.parametrize("argument", ["y", "sample_weight"])
def test_masked_labels_and_weights_are_refused(argument):
    given = {"y": LABEL, "sample_weight": np.ones(60)}
    given[argument] = np.ma.array(given[argument], mask=np.arange(60) == 5)
    for values in (given[argument], list(given[argument])):
        with pytest.raises(ValueError, match=f"^{argument} is masked in 1 place"):
            LHTClassifier().fit(TABLE, **{**given, argument: values})
    whole = np.ma.array(given[argument].data)
    LHTClassifier().fit(TABLE, **{**given, argument: whole})


# ---- dates

DATES = {
    "dates": np.arange(60).astype("M8[D]"),
    "nanoseconds": np.arange(60).astype("M8[ns]"),
    "differences": np.arange(60).astype("m8[s]"),
    "nothing but NaT": np.full(60, "NaT", dtype="M8[s]"),
    "objects of NumPy": np.array(list(np.arange(60).astype("m8[D]")), dtype=object),
    "objects of Python": np.array([datetime.date(2020, 1, 1)] * 60, dtype=object),
    "stamps of pandas": np.array([pd.Timestamp("2020-01-01")] * 60, dtype=object),
}


# NumPy lists nanoseconds as plain integers, and NaT as None.
LISTED_DATES = [name for name in DATES if name not in ("nanoseconds", "nothing but NaT")]


@pytest.mark.parametrize(
    ("name", "is_list"),
    [*((name, False) for name in DATES), *((name, True) for name in LISTED_DATES)],
)
@pytest.mark.parametrize("categorical", [None, [0]])
def test_dates_are_neither_numbers_nor_categories(name, is_list, categorical):
    X = DATES[name][:, np.newaxis]
    X = X.tolist() if is_list else X
    with pytest.raises(ValueError, match=r"^X holds dates or time differences"):
        LHTClassifier(categorical_features=categorical).fit(X, LABEL)
    model = LHTClassifier(categorical_features=categorical).fit(TABLE[:, :1], LABEL)
    with pytest.raises(ValueError, match=r"^X holds dates or time differences"):
        model.predict(X)


def test_time_differences_are_refused_as_weights():
    with pytest.raises(ValueError, match=r"^sample_weight holds dates"):
        LHTClassifier().fit(TABLE, LABEL, np.ones(60).astype("m8[s]"))


def test_a_missing_date_is_refused_as_a_label():
    dates = LABEL.astype("M8[D]")
    assert_array_equal(LHTClassifier().fit(TABLE, dates).classes_, np.unique(dates))
    dates[3] = "NaT"
    with pytest.raises(ValueError, match=r"^y must have a label for every row, got NaT"):
        LHTClassifier().fit(TABLE, dates)


# ---- categories at prediction

COLOURS = np.array(["red", "green"] * 30, dtype=object)


def to_frames(values):
    """Return a column beside a number, as the frames and the array that hold it."""
    number = np.arange(60.0)
    yield pd.DataFrame({"colour": values, "size": number})
    yield pl.DataFrame({"colour": list(values), "size": number})
    table = np.empty((60, 2), dtype=object)
    table[:, 0], table[:, 1] = values, number
    yield table


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ([0, 1] * 30, "only unknown categories.*numbers, such as 0, where training had text"),
        (["Red", "Green"] * 30, "only unknown categories.*text, such as 'Red', where .* text"),
        ([True, False] * 30, "truth values, such as (True|False), where training had text"),
        (["red"] * 59 + ["blue"], None),
        ([None] * 60, None),
    ],
)
def test_categories_that_do_not_match_are_reported(given, kinds):
    trained = list(to_frames(COLOURS))
    for train, X in zip(trained, to_frames(np.array(given, dtype=object)), strict=True):
        categorical = [0] if isinstance(train, np.ndarray) else "from_dtype"
        name = "x0" if isinstance(train, np.ndarray) else "colour"
        model = LHTClassifier(categorical_features=categorical).fit(train, LABEL)
        for predict in (model.predict, model.predict_proba, model.apply):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                predict(X)
            if kinds is None:
                assert caught == []
                continue
            (only,) = caught
            assert only.filename == __file__
            assert repr(name) in str(only.message)
            assert re.search(kinds, str(only.message))


def test_a_call_that_reads_rows_many_times_warns_once(tmp_path):
    train, X = (
        next(to_frames(values)) for values in (COLOURS, np.char.upper(COLOURS.astype(str)))
    )
    model = LHTClassifier().fit(train, LABEL)
    for call in (
        lambda: lhtree.report.write_report(model, X, LABEL, tmp_path / "report.html", max_rows=5),
        lambda: nearest_counterfactual(model, X.iloc[[0]]),
        lambda: explain_rows(model, X),
        lambda: model.score(X, LABEL),
    ):
        with pytest.warns(UserWarning, match="only unknown categories in the column") as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]


def test_truth_values_differ_from_numbers_that_equal_them():
    model = LHTClassifier(categorical_features=["flag"])
    model.fit(pd.DataFrame({"flag": [0, 1] * 30}), LABEL)
    with pytest.warns(UserWarning, match="truth values, such as True, where .* numbers"):
        model.predict(pd.DataFrame({"flag": [True, True]}))
    model.predict(pd.DataFrame({"flag": [0.0, np.nan]}))
