"""How many estimators a forest has."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from forests import assert_same_model, check_trees
from lhtree import LHForestClassifier
from lhtree.training import forest_size


def test_the_size_of_the_table_decides_the_number_of_estimators(three_classes):
    assert forest_size.choose_n_estimators(1_500_000, 1, 1) == 100
    assert forest_size.choose_n_estimators(200_000, 2, 5) == 75
    assert forest_size.choose_n_estimators(10**9, 1, 1) == 15
    model = LHForestClassifier(random_state=0).fit(*three_classes)
    assert model.n_estimators is None
    assert model.n_estimators_ == 100
    assert len(model.trees_) == 300
    assert_same_model(model, LHForestClassifier(100, random_state=0).fit(*three_classes))
    model = LHForestClassifier(preset="paper", random_state=0).fit(*three_classes)
    assert model.n_estimators_ == 100


def test_van_der_corput_fills_the_interval_wherever_it_ends():
    beta = forest_size.schedule_beta(1.0, 0, 64, None)
    for end in (8, 16, 64):
        assert_array_equal(np.sort(beta[:end]), np.arange(end) / end)
    assert forest_size.schedule_beta(0.5, 6, 8, None) == (0.1875, 0.4375)
    assert forest_size.schedule_beta(0.5, 0, 1, 1) == (0.5,)
    assert forest_size.schedule_beta(0.5, 2, 4, 4) == (0.25, 0.375)


@pytest.mark.parametrize(
    ("scores", "enough"),
    [
        ([], False),
        ([0.9], False),
        ([0.9, 0.9], False),
        ([0.9, 0.9, 0.9], True),
        ([0.9, 0.9009, 0.9009], True),
        ([0.9, 0.9009, 0.902], False),
        ([0.9, 0.95, 0.949], False),
        ([0.9, 0.95, 0.949, 0.9505], True),
    ],
)
def test_two_batches_without_improvement_are_enough(scores, enough):
    assert forest_size.is_enough(scores) is enough


@pytest.mark.filterwarnings("ignore:.*drawn by every estimator:UserWarning")
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_estimators_are_added_until_the_out_of_bag_score_stays(three_classes, beta):
    X, y = three_classes
    model = LHForestClassifier("auto", beta=beta, oob_score=True, random_state=0).fit(X, y)
    n = model.n_estimators_
    assert 60 <= n < 500
    assert n % 20 == 0
    # What the fit did in one go, from forests of each size.
    scores = []
    for t in range(20, n + 1, 20):
        part = LHForestClassifier(
            "auto", max_estimators=t, beta=beta, shrinkage=0, oob_score=True, random_state=0
        ).fit(X, y)
        assert part.n_estimators_ == t
        scores.append(part.oob_score_)
    assert forest_size.is_enough(scores)
    assert not forest_size.is_enough(scores[:-1])
    assert_array_equal(part.forest_.left, model.forest_.left)
    two = clone(model).set_params(n_jobs=2).fit(X, y)
    assert_same_model(model, two)


@pytest.mark.parametrize("preset", ["accurate", "paper"])
def test_a_warm_start_by_score_adds_to_the_estimators_there(three_classes, preset):
    X, y = three_classes
    model = LHForestClassifier("auto", max_estimators=30, preset=preset, warm_start=True)
    model.set_params(random_state=0).fit(X, y)
    assert model.n_estimators_ == 30
    old = model.forest_
    model.set_params(max_estimators=70).fit(X, y)
    assert 50 <= model.n_estimators_ <= 70
    assert_array_equal(model.forest_.value[: len(old.value)], old.value)
    check_trees(model.forest_)
    with pytest.raises(ValueError, match="max_estimators=10 must be at least"):
        model.set_params(max_estimators=10).fit(X, y)


def test_growing_by_score_reports_every_estimator_once(three_classes):
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    reported = []

    class Recorder:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            reported.append((context.task_name, context.task_id))

        def teardown(self, estimator, context):
            pass

    model = LHForestClassifier("auto", max_estimators=45, random_state=0)
    model.set_callbacks(Recorder()).fit(*three_classes)
    assert reported == [*(("estimator", i) for i in range(45)), ("fit", 0)]


def test_growing_by_score_needs_out_of_bag_rows(three_classes):
    with pytest.raises(ValueError, match="n_estimators='auto' needs out-of-bag rows"):
        LHForestClassifier("auto", max_samples=None).fit(*three_classes)
