"""Targets, offsets and tables of boosting that cannot be right, and what may look like it."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from lhtree import LHBoostClassifier, LHBoostRegressor, LHForestClassifier, LHTClassifier

X = np.random.default_rng(0).normal(size=(60, 3))
NUMBERS = X[:, 0].tolist()
LABELS = (X[:, 0] > 0).astype(int).tolist()


def refuse(model, words, *args, error=ValueError, **kwargs):
    """Demand one sentence, and a model that stays as it was."""
    before = dict(vars(model))
    with pytest.raises(error, match=words) as caught:
        model.fit(*args, **kwargs)
    assert "\n" not in str(caught.value)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


BAD_NUMBERS = [
    (None, "must be finite numbers, got None; leave out rows without a target"),
    (np.nan, "must be finite numbers, got nan; leave out"),
    ("nan", "must be finite numbers, got 'nan'; leave out"),
    (np.inf, "must be finite numbers, got inf; leave out"),
    (pd.NA, "must be finite numbers, got <NA>; leave out"),
    (10**400, "must be finite numbers, got one too large for a float; leave out"),
    (b"x", "must be numbers, got text such as .*; turn it into numbers, or use a classifier"),
    ("x", "must be numbers, got text such as 'x'; turn it into numbers, or use a classifier"),
    (1j, "must be numbers, got 1j; turn it into numbers"),
]


@pytest.mark.parametrize(("value", "words"), BAD_NUMBERS)
@pytest.mark.parametrize("name", ["y", "y_val"])
def test_targets_among_objects_must_be_finite_numbers(name, value, words):
    y = np.array([value, *NUMBERS[1:]], dtype=object)
    for kind in (list, pd.Series, lambda each: each, lambda each: each[:, np.newaxis]):
        if isinstance(value, float | complex) and kind is list:
            continue  # plain numbers to NumPy
        model = LHBoostRegressor(n_estimators=2).fit(X, NUMBERS)
        given = {"y": kind(y)} if name == "y" else {"y": NUMBERS, "X_val": X, "y_val": kind(y)}
        refuse(model, f"^{name} {words}", X, **given)


def test_targets_must_be_real():
    y = np.array(NUMBERS) + 1j
    refuse(LHBoostRegressor(), "^y must be real numbers: Complex data not supported", X, y)
    words = "^y_val must be real numbers: Complex data not supported"
    refuse(LHBoostRegressor(), words, X, NUMBERS, X_val=X, y_val=y)


@pytest.mark.parametrize("model", [LHTClassifier(), LHForestClassifier(2), LHBoostClassifier()])
@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("labels", [LABELS, list(map(str, LABELS))])
def test_labels_must_be_there(model, gap, labels):
    y = [gap, *labels[1:]]
    words = f"^y must have a label for every row, got {gap!r}; leave out those rows"
    refuse(model, words, X, np.array(y, dtype=object))
    refuse(model, words, X, pd.Series(y, dtype=object))
    category = pd.Series(y).astype("category")
    refuse(model, "^y must have a label for every row|^Input y contains NaN", X, category)
    if gap is not np.nan or isinstance(labels[0], str):  # else plain doubles
        refuse(model, words, X, y)


def test_validation_labels_must_be_there():
    y_val = np.array([None, *LABELS[1:]], dtype=object)
    words = "^y_val must have a label for every row, got None"
    refuse(LHBoostClassifier(), words, X, LABELS, X_val=X, y_val=y_val)


@pytest.mark.parametrize("model", [LHTClassifier(), LHBoostClassifier()])
def test_labels_are_text_or_numbers_but_not_both(model):
    y = np.array(["a", *LABELS[1:]], dtype=object)
    words = f"^y must have labels of one kind, got 'a' and {LABELS[1]}; turn all into text, or"
    refuse(model, words, X, y)


@pytest.mark.parametrize("kind", [int, bool, np.int8, np.bool_])
def test_integers_among_objects_are_labels(kind):
    y = np.array([kind(label) for label in LABELS], dtype=object)
    model = LHBoostClassifier(n_estimators=2).fit(X, y)
    assert model.classes_.dtype == np.array([kind(0)]).dtype
    assert_array_equal(model.fit(X, y, X_val=X, y_val=y).classes_, [0, 1])


def test_sums_beyond_doubles_are_no_warning():
    ends = np.where(X > 0, 1.7e308, -1.7e308)
    frame = pd.DataFrame({"a": ends[:, 0], "b": pd.Series(LABELS).astype("category")})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for table in (ends, frame):
            model = LHBoostRegressor(n_estimators=2).fit(table, ends[:, 0])
            assert np.isfinite(model.predict(table)).all()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (np.full(60, 1j), TypeError, "must be an array of real numbers, got complex ones"),
        ([10**400] * 60, ValueError, "must be finite, got a number too large for a float"),
        (sparse.csr_array(np.ones((60, 1))), TypeError, "must be a dense array of numbers, got a"),
    ],
)
@pytest.mark.parametrize("name", ["sample_weight", "init_score"])
def test_numbers_of_rows_are_dense_real_and_finite(name, given, error, words):
    model = LHBoostRegressor(n_estimators=2)
    refuse(model, f"^{name} {words}", X, NUMBERS, error=error, **{name: given})
    other = {} if name == "sample_weight" else {"init_score": np.ones(60)}
    validation = {"X_val": X, "y_val": NUMBERS, f"{name}_val": given}
    refuse(model, f"^{name}_val {words}", X, NUMBERS, error=error, **other, **validation)


def test_offsets_have_columns():
    words = r"^init_score must have one entry per row .* got an array of shape \(60, 0\)"
    refuse(LHBoostRegressor(), words, X, NUMBERS, init_score=np.ones((60, 0)))


def test_a_name_of_a_file_is_no_table():
    words = "^X must be a table, got the text 'rows.csv'; read that file first"
    refuse(LHTClassifier(), words, "rows.csv", LABELS, error=TypeError)
    with pytest.raises(TypeError, match=words):
        LHTClassifier().fit(X, LABELS).predict("rows.csv")


@pytest.mark.parametrize("second", [X[:, 1], ["red", "green"] * 30])
def test_two_columns_of_one_name_are_refused(second):
    words = re.escape("X has several columns with the name 'a'; rename them.")
    frame = pd.concat([pd.Series(X[:, 0], name="a"), pd.Series(second, name="a")], axis=1)
    for model in (LHTClassifier(), LHBoostClassifier()):
        refuse(model, words, frame, LABELS)
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_arrays([pa.array(X[:, 0]), pa.array(second)], names=["a", "a"])
    refuse(LHBoostClassifier(), words, table, LABELS)
