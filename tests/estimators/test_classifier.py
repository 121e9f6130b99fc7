"""What the two classifiers do beyond growing a tree."""

import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reference
import tables
from forests import assert_same_model, check_trees, list_features
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.data.weights import to_units

# Rules of the exact engine, and others.
RULES = [{}, {"calibration": None}, {"preset": "paper"}, {"voting": "margin"}, {"beta": 0.5}]

# A single tree per class is a forest of one estimator on all rows.
PARAMS_OF_A_TREE = {
    "n_estimators": 1, "max_samples": None, "bootstrap": False, "voting": "membership",
    "random_state": 0,
}  # fmt: skip


def predict_by_reference(model, X, y, sample_weight=None):
    """Fit and predict with the reference, from the model's parameters."""
    classes, y_encoded = np.unique(y, return_inverse=True)
    weight = np.ones(len(X)) if sample_weight is None else reference.resolve_weight(sample_weight)
    mean, std = reference.standardization(X, weight)
    Z = (X - mean) / std
    own = PARAMS_OF_A_TREE | model.get_params()
    t, max_samples = own["n_estimators"], own["max_samples"]
    n_draws = len(X) if max_samples is None else round(max_samples * len(X))
    seed = np.random.RandomState(own["random_state"]).randint(2**31 - 1)
    trees, positive_class = [], []
    for i in range(t):
        beta = model.beta if t == 1 else model.beta * i / t
        params = reference.Params(
            alpha=model.alpha, beta=beta, gamma=model.gamma,
            min_samples_split=model.min_samples_split, max_depth=model.max_depth,
        )  # fmt: skip
        rows, count = reference.draw_rows(seed, i, len(X), n_draws, own["bootstrap"])
        for k in [1] if len(classes) == 2 else range(len(classes)):
            key = reference.tree_key(seed, i, k)
            is_positive = y_encoded[rows] == k
            trees.append(reference.grow(Z[rows], is_positive, weight[rows] * count, params, key))
            positive_class.append(k)
    proba = reference.predict_proba(trees, positive_class, Z, len(classes), own["voting"])
    return proba, reference.importances(trees, X.shape[1])


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("voting", ["membership", "margin"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_estimators", [1, 4])
def test_forest_is_the_reference(blobs, bootstrap, voting, n_classes, n_estimators):
    X, y = blobs
    y = np.minimum(y, n_classes - 1)
    model = LHForestClassifier(
        n_estimators, preset="paper", voting=voting, bootstrap=bootstrap, beta=0.7, gamma=3,
        min_samples_split=4, max_depth=4, random_state=3,
    ).fit(X, y)  # fmt: skip
    proba, importances = predict_by_reference(model, X, y)
    assert_allclose(model.predict_proba(X), proba, atol=1e-9)
    assert_array_equal(model.predict(X), proba.argmax(axis=1))
    assert_allclose(model.feature_importances_, importances, atol=1e-9)


@pytest.mark.parametrize("kind", ["integer", "fractional"])
def test_single_trees_with_weights_are_the_reference(blobs, kind):
    X, y = blobs
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, 300) if kind == "integer" else rng.uniform(0.1, 5, 300)
    model = LHTClassifier(beta=0.3, max_depth=4).fit(X, y, sample_weight=weight)
    proba, importances = predict_by_reference(model, X, y, weight)
    assert_allclose(model.predict_proba(X), proba, atol=1e-9)
    assert_allclose(model.feature_importances_, importances, atol=1e-9)


@settings(max_examples=60)
@given(
    tables.integer_tables(),
    st.integers(1, 4),
    st.sampled_from(RULES),
    st.booleans(),
)
def test_probabilities_are_probabilities(table, n_classes, rules, bootstrap):
    X, is_positive = table
    y = (np.arange(len(X)) * 7 + is_positive) % n_classes
    model = LHForestClassifier(3, **rules, bootstrap=bootstrap, random_state=0).fit(X, y)
    check_trees(model.forest_)
    for rows in (X, -2.5 * X, X * 1e300, X * -1e-300):
        proba = model.predict_proba(rows)
        assert proba.min() >= 0
        assert_allclose(proba.sum(axis=1), 1)
        assert_array_equal(model.predict(rows), model.classes_[proba.argmax(axis=1)])
        assert_array_equal(model.predict_log_proba(rows), np.log(proba))


@settings(max_examples=60)
@given(
    tables.real_tables(),
    st.sampled_from([1, 3]),
    tables.weights,
    st.sampled_from(["accurate", "paper"]),
)
def test_training_rows_reach_the_leaves_they_grew(table, n_estimators, kind, preset):
    X, is_positive = table
    weight = tables.make_weight(kind, len(X))
    model = LHForestClassifier(n_estimators, preset=preset, max_samples=None, random_state=0)
    model.fit(X, is_positive, sample_weight=weight)
    leaf = model.apply(X)
    assert leaf.shape == (len(X), len(model.trees_))
    units = to_units(weight)[0] if preset == "accurate" else None
    for k, tree in enumerate(model.trees_):
        count = np.bincount(leaf[:, k], units, minlength=tree.n_nodes)
        grown = model.forest_.weight[tree.nodes] if preset == "accurate" else tree.n_samples
        assert_array_equal(count, np.where(tree.left < 0, grown, 0))


@settings(max_examples=40)
@given(tables.real_tables(), st.integers(0, 3), st.booleans(), st.sampled_from([0.0, 0.5]))
def test_threads_and_dtype_change_nothing(table, seed, standardize, beta):
    X, is_positive = table
    X32 = np.clip(X, -1e30, 1e30).astype(np.float32)
    common = {"beta": beta, "random_state": seed, "standardize": standardize}
    one = LHForestClassifier(5, n_jobs=1, **common).fit(X32, is_positive)
    two = LHForestClassifier(5, n_jobs=2, **common).fit(X32.astype(float), is_positive)
    assert_same_model(one, two)
    assert_array_equal(one.predict_proba(X32), two.predict_proba(X32.astype(float)))


def test_threads_change_nothing_on_many_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    y = rng.integers(0, 3, 3000) + (X[:, 0] > 0)
    for preset in ("accurate", "paper"):
        kind = {"preset": preset, "bootstrap": True, "oob_score": False, "random_state": 1}
        models = [LHForestClassifier(4, n_jobs=n, **kind).fit(X, y) for n in (1, 2, 7)]
        for other in models[1:]:
            assert_same_model(models[0], other)
            assert_array_equal(models[0].predict_proba(X), other.predict_proba(X))
            assert_array_equal(models[0].apply(X), other.apply(X))


def test_units_of_the_columns_do_not_matter(blobs):
    X, y = blobs
    moved = X * 2.0 ** np.array([0, 8, -9, 3, 20, -30])  # exact in binary
    for preset in ("accurate", "paper"):
        a, b = (LHForestClassifier(5, preset=preset, random_state=0).fit(x, y) for x in (X, moved))
        assert_array_equal(a.predict(X), b.predict(moved))


def test_an_offset_of_1e8_changes_nothing():
    rng = np.random.default_rng(0)
    X = rng.integers(-1000, 1000, size=(400, 5)) * 2.0**-20
    y = (X @ [3, -1, 2, 0, 1] + rng.normal(size=400) * 1e-3 > 0).astype(int)
    for standardize in (True, False):
        a, b = (
            LHTClassifier(standardize=standardize).fit(x, y).trees_[0] for x in (X, X + 2.0**27)
        )
        assert_array_equal(a.left, b.left)
        assert_array_equal(a.n_samples, b.n_samples)


def test_warm_start_draws_with_the_seed_of_the_first_fit(blobs):
    for preset, name in (("accurate", "weight"), ("paper", "n_samples")):
        kind = {"preset": preset, "shrinkage": 0.0}
        rng = np.random.RandomState(3)
        model = LHForestClassifier(2, **kind, warm_start=True, random_state=rng)
        plain = LHForestClassifier(4, **kind, random_state=np.random.RandomState(3)).fit(*blobs)
        model.fit(*blobs).set_params(n_estimators=4).fit(*blobs)
        assert_array_equal(getattr(model.forest_, name), getattr(plain.forest_, name))


def test_warm_start_keeps_old_estimators_and_adds_new_ones(blobs):
    X, y = blobs
    model = LHForestClassifier(3, beta=0.6, warm_start=True, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="drawn by every estimator"):
        model.fit(X, y)
    old = model.forest_
    with pytest.warns(UserWarning, match="drawn by every estimator"):
        model.set_params(n_estimators=5).fit(X, y)
    whole = LHForestClassifier(5, beta=0.6, random_state=0).fit(X, y)
    n_old = len(old.left)
    assert_array_equal(model.forest_.left[:n_old], old.left)
    assert_array_equal(
        model.forest_.left[n_old:], whole.forest_.left[whole.forest_.tree_start[9] :]
    )
    check_trees(model.forest_)
    model.set_params(oob_score=False)
    with pytest.warns(UserWarning, match="are grown already"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="n_estimators=2 must be at least 5"):
        model.set_params(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="standardize=False differs from the estimators"):
        clone_with_fit(model, standardize=False, n_estimators=6).fit(X, y)
    with pytest.raises(ValueError, match="warm_start=True needs the draws"):
        model.set_params(n_estimators=6).fit(X[:250], y[:250])
    with pytest.raises(ValueError, match=r"y has the classes \[False, True\]"):
        model.fit(X, y > 1)


def clone_with_fit(model, **params):
    """Copy a fitted model with other parameters."""
    return pickle.loads(pickle.dumps(model)).set_params(**params)


def test_random_state_none_differs_and_int_repeats(blobs):
    X, y = blobs
    a, b = (LHForestClassifier(3).fit(X, y).forest_.left for _ in range(2))
    assert not np.array_equal(a, b)
    assert_same_model(*(LHForestClassifier(3, random_state=9).fit(X, y) for _ in range(2)))


def test_the_betas_of_estimators_follow_the_papers_schedule(blobs):
    X, y = blobs
    model = LHForestClassifier(4, preset="paper", beta=1.0, random_state=0).fit(X, y)
    n_terms = [len(tree.terms(0)[0]) for tree in model.trees_[::3]]
    least = [abs(tree.terms(0)[1]).min() for tree in model.trees_[::3]]
    assert n_terms[0] == 6
    assert all(weight >= i / 4 for i, weight in enumerate(least))
    single = LHForestClassifier(1, preset="paper", beta=1.0).fit(X, y)
    assert single.trees_[0].terms(0)[0].size == 1


def test_max_features_draws_columns(blobs):
    X, y = blobs
    model = LHForestClassifier(5, preset="paper", max_features=2, random_state=0).fit(X, y)
    terms = [tree.terms(0)[0] for tree in model.trees_]
    assert all(len(columns) == 2 for columns in terms)
    assert len({tuple(columns) for columns in terms}) > 3
    model = LHForestClassifier(5, max_features_per_tree="sqrt", random_state=0).fit(X, y)
    drawn = list_features(model.trees_)
    assert {len(columns) for columns in drawn} <= {1, 2}
    assert len({tuple(sorted(columns)) for columns in drawn}) > 3


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array(["a", "b", "c"]), "U"),
        (np.array(["a", "b", "c"], dtype=object), "O"),
        (np.array([True, False, True]), "b"),
        (np.array([-5, 7, 100]), "i"),
        (np.array([1.0, 2.0, 3.0]), "f"),
    ],
)
def test_labels_of_any_kind(blobs, labels, kind):
    X, y = blobs
    model = LHTClassifier().fit(X, labels[y])
    assert model.classes_.dtype.kind == kind
    assert model.predict(X).dtype.kind == kind
    assert_array_equal(model.classes_, np.unique(labels))
    assert model.score(X, labels[y]) == 1


def test_one_class_is_always_predicted():
    for model in (LHTClassifier(), LHForestClassifier(3)):
        model.fit([[1.0], [2.0]], ["only", "only"])
        assert_array_equal(model.predict([[5.0]]), ["only"])
        assert_array_equal(model.predict_proba([[5.0]]), [[1.0]])
        assert_array_equal(model.feature_importances_, [0.0])
        assert (model.get_depth(), model.get_n_leaves()) == (0, model.n_estimators_)


def test_one_row_and_two_rows():
    assert LHTClassifier().fit([[1.0, 2.0]], [3]).predict([[0, 0]]) == [3]
    model = LHTClassifier().fit([[0.0], [1.0]], ["a", "b"])
    assert_array_equal(model.predict([[-1.0], [0.2], [0.9]]), ["a", "a", "b"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_read_by_name(library, blobs):
    frames = pytest.importorskip(library)
    X, y = blobs
    names = [f"column {j}" for j in range(6)]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    model = LHForestClassifier(3, random_state=0).fit(frame, y)
    assert_array_equal(model.feature_names_in_, names)
    unnamed = LHForestClassifier(3, random_state=0).fit(X, y)
    assert_array_equal(model.predict_proba(frame), unnamed.predict_proba(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)


def test_importances_find_the_columns_that_matter():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X["noise"] = np.random.default_rng(0).normal(size=len(X))
    importances = LHForestClassifier(random_state=0).fit(X, y).feature_importances_
    assert_allclose(importances.sum(), 1)
    assert importances.argmin() == X.columns.get_loc("noise")


def test_pipelines_searches_pickles_and_clones(blobs):
    X, y = blobs
    pipeline = make_pipeline(StandardScaler(), LHForestClassifier(5, random_state=0))
    search = GridSearchCV(pipeline, {"lhforestclassifier__beta": [0.0, 0.8]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5
    model = LHForestClassifier(5, random_state=0).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert not copy.forest_.left.flags.writeable
    assert_same_model(clone(model).fit(X, y), model)
    assert "LHForestClassifier" in model._repr_html_()


def test_decision_path_is_what_forests_return(blobs):
    X, y = blobs
    model = LHForestClassifier(4, random_state=0).fit(X, y)
    indicator, start = model.decision_path(X)
    other = RandomForestClassifier(4).fit(X, y).decision_path(X)
    assert type(indicator) is type(other[0])
    assert indicator.shape == (300, start[-1])
    leaf = model.apply(X)
    for k, tree in enumerate(model.trees_):
        part = indicator[:, start[k] : start[k + 1]].toarray()
        assert_array_equal(part[:, 0], 1)
        assert_array_equal(part[np.arange(300), leaf[:, k]], 1)
        assert_array_equal(part.sum(axis=0), count_rows_through(tree, leaf[:, k]))


def count_rows_through(tree, leaf):
    count = np.bincount(leaf, minlength=tree.n_nodes)
    for node in np.flatnonzero(tree.left >= 0)[::-1]:
        count[node] = count[tree.left[node]] + count[tree.left[node] + 1]
    return count


def test_depth_and_leaves_agree_with_the_trees(blobs):
    X, y = blobs
    model = LHForestClassifier(4, random_state=0).fit(X, y)
    assert model.get_depth() == max(tree.depth for tree in model.trees_)
    assert model.get_n_leaves() == sum(tree.n_leaves for tree in model.trees_)
    for depth in (0, 1, 3):
        assert LHForestClassifier(4, max_depth=depth).fit(X, y).get_depth() == depth


def test_verbose_prints_progress(blobs, capfd):
    LHForestClassifier(7, verbose=1, random_state=0).fit(*blobs)
    text = capfd.readouterr().err
    assert "[lhtree] 7 of 7 estimators" in text


def test_scikit_learn_callbacks_get_every_estimator(blobs):
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")

    class Recorder:
        def __init__(self):
            self.names = []

        def setup(self, estimator, context):
            self.names.append("setup")

        def teardown(self, estimator, context):
            self.names.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            self.names.append(f"begin {context.task_name}")

        def on_fit_task_end(self, estimator, context):
            self.names.append(f"end {context.task_name}")

    recorder = Recorder()
    model = LHForestClassifier(3).set_callbacks(recorder)
    model.fit(*blobs)
    steps = ["begin estimator", "end estimator"] * 3
    assert recorder.names == ["setup", "begin fit", *steps, "end fit", "teardown"]
    recorder.names.clear()
    with pytest.raises(ValueError, match="infinity"):
        model.fit([[np.inf], [1.0]], [0, 1])
    assert recorder.names == ["setup", "begin fit", "teardown"]


def test_a_fit_that_fails_leaves_the_model_as_it_was(blobs):
    X, y = blobs
    model = LHForestClassifier(3, random_state=0).fit(X, y)
    before = dict(vars(model))
    for bad_X, bad_y in [(X[:, :2], y[:5]), (X + np.inf, y), (X[:, :2], np.full(300, 0.5) + y)]:
        with pytest.raises(ValueError, match=r"inconsistent|infinity|Unknown label type"):
            model.fit(bad_X, bad_y)
        assert vars(model) == before


def test_ties_go_to_the_most_confident_claim_or_the_least_confident_refusal():
    X, y = load_iris(return_X_y=True)
    model = LHTClassifier().fit(X, y)
    rows = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), size=(2000, 4))
    vote, signed, _ = model.forest_.vote(rows, n_classes=3)
    best = vote.max(axis=1, keepdims=True)
    is_tied = (vote == best).sum(axis=1) > 1
    assert (is_tied & (best[:, 0] == 1)).sum() > 20  # several claim the row
    assert (is_tied & (best[:, 0] == 0)).sum() > 20  # none does
    expected = np.where(vote == best, signed, -np.inf).argmax(axis=1)
    assert_array_equal(model.predict(rows), expected)


def test_small_fits_take_milliseconds():
    X, y = load_iris(return_X_y=True)
    LHTClassifier().fit(X, y)
    start = time.perf_counter()
    for _ in range(20):
        LHTClassifier().fit(X, y)
    assert time.perf_counter() - start < 2  # a hang or a thread per node would show


@pytest.mark.parametrize(
    "model", [LHForestClassifier(4, random_state=0), LHForestClassifier(3, preset="paper")]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_forest_is_a_sequence_of_its_estimators(model, n_classes):
    X, y = load_wine(return_X_y=True)
    model = clone(model)
    assert model
    with pytest.raises(NotFittedError):
        len(model)
    model.fit(X[y < n_classes], y[y < n_classes])
    assert len(model) == model.n_estimators_ == len(list(model))
    last = model[-1] if n_classes == 2 else model[-1][-1]
    assert last.number == model.trees_[-1].number
    with pytest.raises(IndexError):
        model[len(model)]
