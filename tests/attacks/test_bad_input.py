"""Bad input gets one clear sentence that names the argument, the value and the remedy."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lhtree import LHBoostRegressor, LHForestClassifier, LHTClassifier, _core

X = np.arange(40.0).reshape(20, 2)
Y = np.arange(20) % 3


@pytest.mark.parametrize("classifier", [LHTClassifier, LHForestClassifier])
@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("alpha", -1, ValueError, "alpha must be a number of at least 0, got -1."),
        ("alpha", "a", TypeError, "alpha must be a number of at least 0, got 'a'."),
        ("alpha", np.nan, ValueError, "alpha must be a number of at least 0, got nan."),
        ("alpha", np.inf, ValueError, "alpha must be a number of at least 0, got inf."),
        ("beta", 1.1, ValueError, "beta must be a number from 0 to 1, got 1.1."),
        ("beta", True, TypeError, "beta must be a number from 0 to 1, got True."),
        ("gamma", 0, ValueError, "gamma must be a number above 0, got 0."),
        ("min_samples_split", 1, ValueError, "min_samples_split must be an integer of at least 2"),
        ("min_samples_split", 1.5, ValueError, "or a float in (0, 1] for a fraction of the rows"),
        ("max_depth", -1, ValueError, "max_depth must be an integer of at least 0, or None"),
        ("max_depth", 2.5, TypeError, "max_depth must be an integer of at least 0, or None"),
        ("min_weight_fraction_leaf", 0.6, ValueError, "must be a number from 0 to 0.5, got 0.6."),
        ("standardize", "yes", TypeError, "standardize must be True or False, got 'yes'."),
        ("class_weight", "equal", ValueError, "class_weight must be None, a dict"),
        ("class_weight", {7: 2}, ValueError, "class_weight names the class 7, which is not in y"),
        ("class_weight", {1: -2}, ValueError, "got -2 for the class 1"),
        ("class_weight", {1: "x"}, ValueError, "got 'x' for the class 1"),
        ("class_weight", {0: 0, 1: 0, 2: 0}, ValueError, "leaves no row"),
        ("n_jobs", 0, ValueError, "n_jobs must be a nonzero integer"),
        ("n_jobs", "all", TypeError, "n_jobs must be a nonzero integer"),
        ("alpha", 10**400, ValueError, "alpha must be a number of at least 0"),
        ("min_samples_split", 10**400, ValueError, "min_samples_split must be an integer"),
        ("class_weight", {1: 10**400}, ValueError, "class_weight must hold finite numbers"),
        ("class_weight", {0: 1, 1: 1e100}, ValueError, " must have positive values below 1e+60"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_parameters_of_both(classifier, name, value, error, message):
    model = classifier(**{name: value})
    with pytest.raises(error) as caught:
        model.fit(X, Y)
    assert message in str(caught.value)
    assert vars(model) == vars(classifier(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("n_estimators", 0, ValueError, "n_estimators must be an integer from 1 to 1048576, 'a"),
        ("n_estimators", 2.0, TypeError, "n_estimators must be an integer from 1 to 1048576"),
        ("n_estimators", 2**20 + 1, ValueError, "1048576, 'auto' or None, got 1048577."),
        ("max_samples", 0.0, ValueError, "max_samples must be a float in (0, 1]"),
        ("max_samples", 1.5, ValueError, "max_samples must be a float in (0, 1]"),
        ("max_samples", 21, ValueError, "at most the number of rows, 20, unless bootstrap=True"),
        ("max_samples", 2**40, ValueError, "an integer from 1 to 2**30"),
        ("bootstrap", 1, TypeError, "bootstrap must be True or False, got 1."),
        ("max_features", "all", ValueError, "'sqrt', 'log2', 'auto' or None, got 'all'."),
        ("max_features", 0, ValueError, "max_features must be an integer of at least 1"),
        ("max_features", 1.1, ValueError, "max_features must be an integer of at least 1"),
        ("max_features_per_tree", -1, ValueError, "max_features_per_tree must be"),
        ("voting", "soft", ValueError, "voting must be one of 'membership', 'margin', got 'soft'"),
        ("voting", 3, TypeError, "voting must be one of 'membership', 'margin', got 3"),
        ("n_estimators", "many", TypeError, "'auto' or None, got 'many'."),
        ("max_estimators", 0, ValueError, "max_estimators must be an integer from 1 to 1048576"),
        ("max_estimators", 2**20 + 1, ValueError, "from 1 to 1048576, got 1048577."),
        ("max_bins", 1, ValueError, "max_bins must be an integer from 2 to 255, got 1."),
        ("max_bins", 256, ValueError, "max_bins must be an integer from 2 to 255, got 256."),
        ("max_bins", "all", TypeError, "max_bins must be an integer from 2 to 255, got 'all'."),
        ("max_categories", 256, ValueError, "max_categories must be an integer from 2 to 255"),
        ("monotonic_cst", [2, 0], ValueError, "monotonic_cst must have 1"),
        ("monotonic_cst", [1, 0], ValueError, "monotonic_cst"),  # there are three classes
        ("monotonic_cst", [1], ValueError, "one entry for each of the 2 columns"),
        ("interaction_cst", "all", ValueError, "interaction_cst must be None, "),
        ("interaction_cst", [{0, 2}], ValueError, "interaction_cst"),
        ("shrinkage", -1, ValueError, "shrinkage must be a number of at least 0, or 'auto'"),
        ("shrinkage", "much", TypeError, "shrinkage must be a number of at least 0, or 'auto'"),
        ("calibration", "isotonic", ValueError, "calibration must be one of 'auto', 'oob', "),
        ("oob_score", "yes", TypeError, "oob_score must be True or False"),
        ("warm_start", None, TypeError, "warm_start must be True or False, got None."),
        ("verbose", "loud", TypeError, "verbose must be a number"),
        ("random_state", "seed", ValueError, "random_state must be None, an integer"),
        ("random_state", -1, ValueError, "an integer from 0 to 2**32 - 1 or a RandomState"),
        ("preset", "best", ValueError, "preset must be one of 'accurate', 'paper', got 'best'"),
        ("contrast", "lda", ValueError, "one of 'mean', 'standardized', 'fisher', 'auto'"),
        ("criterion", "entropy", ValueError, "criterion must be one of 'purity', 'gini', 'auto'"),
        ("axis_splits", 1, TypeError, "axis_splits must be True, False or 'auto', got 1."),
        ("n_hyperplanes", 1.5, TypeError, "n_hyperplanes must be an integer of at least 0, or"),
        ("n_hyperplanes", -1, ValueError, "n_hyperplanes must be an integer of at least 0, or"),
    ],
)
def test_parameters_of_forests(name, value, error, message):
    with pytest.raises(error) as caught:
        LHForestClassifier(**{name: value}).fit(X, Y)
    assert message in str(caught.value)


def test_nodes_need_a_candidate():
    with pytest.raises(ValueError, match="n_hyperplanes=0 with axis_splits=False leaves"):
        LHForestClassifier(n_hyperplanes=0, axis_splits=False).fit(X, Y)


def test_single_trees_have_no_subsamples_to_balance():
    with pytest.raises(ValueError, match=r"\(forests only\) 'balanced_subsample'"):
        LHTClassifier(class_weight="balanced_subsample").fit(X, Y)


def test_out_of_bag_scores_need_out_of_bag_rows():
    with pytest.raises(ValueError, match=r"max_samples=1.0 draws all 20; use a smaller"):
        LHForestClassifier(oob_score=True, max_samples=1.0).fit(X, Y)


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (np.ones(19), ValueError, r"one entry per row of X, shape \(20,\), got an array of shape"),
        (np.ones((20, 1)), ValueError, r"shape \(20, 1\)"),
        (np.full(20, -1.0), ValueError, "finite and not negative, got -1.0"),
        (np.full(20, np.nan), ValueError, "finite and not negative, got nan"),
        (np.full(20, np.inf), ValueError, "finite and not negative, got inf"),
        (np.zeros(20), ValueError, "zero for every row"),
        (["a"] * 20, TypeError, "sample_weight must be an array of numbers"),
        (np.full(20, 1e300), ValueError, r"sample_weight must have positive values below 1e\+60"),
        (np.geomspace(1e-300, 1, 20), ValueError, "got 1e-300 and 1; scale them"),
        (np.full(20, 1j), TypeError, "real numbers, got complex"),
    ],
)
def test_sample_weight(weight, error, message):
    with pytest.raises(error, match=message):
        LHTClassifier().fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("classifier", [LHTClassifier, LHForestClassifier])
@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (np.full((20, 2), np.inf), Y, "Input X contains infinity"),
        (X[:0], Y[:0], "Found array with 0 sample"),
        (X[:, :0], Y, r"Found array with 0 feature\(s\)"),
        (X[:, 0], Y, "Expected 2D array, got 1D array"),
        (X[np.newaxis], Y, "Found array with dim 3"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (X, np.column_stack([Y, Y]), "y should be a 1d array"),
        (X, np.linspace(0, 1, 20), "Unknown label type: continuous"),
        (X, np.where(Y > 0, Y, np.nan), "Input y contains NaN"),
        (X.astype(complex), Y, "Complex data not supported"),
        (np.char.add(X.astype(str), "x"), Y, "X has text in column 0, such as"),
    ],
)
def test_training_data(classifier, rows, labels, message):
    model = classifier()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(rows, labels)
    assert vars(model) == vars(classifier())


@pytest.mark.parametrize(
    "table",
    [[[1.0, "red"], [2.0, "blue"]], np.array([[1.0, "red"], [2.0, "blue"]], dtype=object)],
)
def test_text_in_arrays_is_named(table):
    with pytest.raises(ValueError, match="text in column 1, such as 'red'; name it in"):
        LHTClassifier().fit(table, [0, 1])
    LHTClassifier(categorical_features=[1]).fit(table, [0, 1])
    model = LHTClassifier().fit([[1.0, 2.0], [2.0, 1.0]], [0, 1])
    with pytest.raises(ValueError, match="'red'; the training rows had numbers there"):
        model.predict(table)


def test_a_table_that_is_not_in_memory_is_refused():
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="X must be in memory, got a LazyFrame; call its collect"):
        LHTClassifier().fit(pl.LazyFrame({"a": [1.0, 2.0]}), [0, 1])


def test_a_column_may_be_called_like_a_method():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"collect": [1.0, 2.0]})
    assert LHTClassifier().fit(frame, [0, 1]).score(frame, [0, 1]) == 1


@pytest.mark.parametrize("standardize", [True, False])
def test_columns_that_overflow_are_named(standardize):
    huge = X.copy()
    huge[3, 1] = 1e200
    huge[:3, 0] = np.nan  # a missing value does not overflow
    with pytest.raises(ValueError, match=r"whose squares overflow, in column 1; divide"):
        LHTClassifier(standardize=standardize).fit(huge, Y)
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="in column income; divide"):
        LHTClassifier(standardize=standardize).fit(
            pd.DataFrame(huge, columns=["age", "income"]), Y
        )


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("unit", [1e-320, 1e-200, 1e-160, 1e150])
def test_extreme_units_get_finite_probabilities(standardize, unit):
    model = LHTClassifier(standardize=standardize).fit(X * unit, Y)
    proba = model.predict_proba(np.concatenate([X * unit, X, -X * 1e300]))
    assert np.isfinite(proba).all()


def test_parameters_changed_after_fit_are_checked_again():
    model = LHForestClassifier(2, preset="paper").fit(X, Y)
    with pytest.raises(ValueError, match="voting must be one of"):
        model.set_params(voting="bogus").predict(X)
    for fitted in (model.set_params(voting="margin"), LHForestClassifier(2).fit(X, Y)):
        with pytest.raises(TypeError, match="n_jobs must be a nonzero integer"):
            fitted.set_params(n_jobs="a").predict(X)
        assert len(fitted.set_params(n_jobs=2**70).predict(X)) == 20


def test_out_of_bag_scores_say_when_every_row_was_drawn():
    model = LHForestClassifier(3, bootstrap=True, max_samples=10_000)
    readers = {"oob_score": True}, {"calibration": "oob"}, {"n_estimators": "auto"}
    for preset in ("accurate", "paper"):
        for reader in readers:
            own = clone(model).set_params(preset=preset, **reader)
            with pytest.raises(ValueError, match="every estimator drew all 20 rows; use a smal"):
                own.fit(X, Y)
            assert not hasattr(own, "forest_")
        plain = clone(model).set_params(preset=preset).fit(X, Y)
        assert not hasattr(plain, "calibration_")


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_bins", 64), ("monotonic_cst", [1, 0]), ("interaction_cst", [{0}, {1}])],
)
@pytest.mark.parametrize(
    "rules",
    [{"preset": "paper"}, {"contrast": "mean"}, {"criterion": "purity"}, {"voting": "margin"},
     {"alpha": 0.1}, {"beta": 0.1}],
)  # fmt: skip
def test_parameters_of_the_exact_engine_need_its_rules(name, value, rules):
    with pytest.raises(ValueError, match=f"^{name}=.* needs contrast='fisher', .* leave it at"):
        LHForestClassifier(3, **{name: value}, **rules).fit(X, Y > 0)


def test_huge_limits_are_no_limits():
    model = LHTClassifier(max_depth=2**70, n_jobs=2**70).fit(X, Y)
    assert model.get_depth() == LHTClassifier().fit(X, Y).get_depth()


@pytest.mark.parametrize("method", ["predict", "predict_proba", "apply", "decision_path"])
@pytest.mark.parametrize("classifier", [LHTClassifier, LHForestClassifier])
def test_prediction(classifier, method):
    model = classifier()
    with pytest.raises(NotFittedError):
        getattr(model, method)(X)
    model.fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 1 features, but .* is expecting 2 features"):
        getattr(model, method)(X[:, :1])
    with pytest.raises(ValueError, match="infinity"):
        getattr(model, method)(X + np.inf)


@pytest.mark.parametrize("name", ["trees_", "feature_importances_", "get_depth", "get_n_leaves"])
def test_an_unfitted_model_says_so(name):
    with pytest.raises(NotFittedError):
        read_or_call(LHTClassifier(), name)


def read_or_call(model, name):
    attribute = getattr(model, name)
    return attribute() if callable(attribute) else attribute


def test_the_core_refuses_objects_that_are_not_forests():
    with pytest.raises(AttributeError, match="tree_start"):
        _core.apply(object(), X, 1)
    forest = SimpleNamespace(**vars(LHTClassifier().fit(X, Y).forest_))
    forest.left = forest.left.astype(np.int64)
    with pytest.raises(ValueError, match="the array 'left' has the wrong type"):
        _core.apply(forest, X, 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"row": np.arange(20)}, "the array 'row' has the wrong type"),
        ({"row": np.arange(1, 21, dtype=np.uint32)}, "the rows of the nodes do not fit together"),
        ({"weight": np.ones(3)}, "the rows of the nodes do not fit together"),
        ({"start": np.array([0, 21])}, "the rows of the nodes do not fit together"),
        ({"middle": np.array([21])}, "the rows of the nodes do not fit together"),
    ],
)
def test_the_core_refuses_nodes_that_do_not_fit_the_partition(values, message):
    tasks = pytest.importorskip("lhtree.dask.tasks", reason="needs Dask")
    row = np.arange(20, dtype=np.uint32)
    state = tasks.State(row, None, np.array([0, 20]), np.array([7]))
    column = np.array([0, 1], dtype=np.int32)
    request = tasks.Request(np.array([0, 2]), column, np.zeros(2), False)
    scale = np.zeros(2), np.ones(2)
    sums, _ = _core.measure_nodes(X, scale, state, request)
    assert sums.reshape(2, 3)[:, :2].tolist() == [[X[:7, j].sum(), X[7:, j].sum()] for j in (0, 1)]
    with pytest.raises(ValueError, match=message):
        _core.measure_nodes(X, scale, state._replace(**values), request)
    with pytest.raises(AttributeError, match="row"):
        _core.measure_nodes(X, scale, object(), request)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_text_is_not_read_as_numbers_to_predict(kind):
    message = "^y must be numbers, got text such as 'yes'; turn it into numbers, or use a class"
    with pytest.raises(ValueError, match=message):
        LHBoostRegressor().fit(X, kind(["yes", "no"] * 10))
    of_numbers = kind([f"{i}" for i in range(20)])
    assert LHBoostRegressor(n_estimators=2).fit(X, of_numbers).n_iter_ == 2
