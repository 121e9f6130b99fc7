"""Calibrated probabilities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

import lhtree
from lhtree import LHForestClassifier
from lhtree.model.prediction import normalize_scores
from lhtree.training.calibration import fit_exponent


def test_the_exponent_has_the_least_log_loss():
    rng = np.random.default_rng(0)
    score = rng.uniform(0.01, 1, (5000, 3))
    true = normalize_scores(score, 0.0, 2.5)
    y_encoded = (true.cumsum(axis=1) < rng.uniform(size=(5000, 1))).sum(axis=1)
    for weight in (None, rng.integers(1, 4, 5000).astype(float)):
        best = fit_exponent(np.log(score), y_encoded, weight)
        assert abs(best - 2.5) < 0.3

        def loss(exponent, weight=weight):
            proba = normalize_scores(score, 0, exponent)
            return log_loss(y_encoded, proba, sample_weight=weight)

        assert loss(best) <= min(loss(best * factor) for factor in (0.99, 1.01)) + 1e-12


def test_the_exponent_stays_in_bounds():
    certain = np.log([[0.9, 0.1], [0.1, 0.9]])
    assert fit_exponent(certain, np.array([0, 1]), None) == pytest.approx(20, abs=1e-3)
    assert fit_exponent(certain, np.array([1, 0]), None) == pytest.approx(0.01, abs=1e-3)
    assert np.isfinite(fit_exponent(np.zeros((3, 2)), np.array([0, 1, 1]), None))


def test_calibration_of_random_labels_keeps_the_predictions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    for seed in range(4):
        model = LHForestClassifier(4, calibration="oob", random_state=seed).fit(X, y)
        assert model.calibration_[1] >= 0.01
        proba = model.predict_proba(X)
        assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("table", ["noisy_labels", "three_classes"])
def test_calibration_keeps_predictions_and_lowers_the_log_loss(table, request):
    X, y = request.getfixturevalue(table)
    train, test = np.arange(len(y)) % 3 != 0, np.arange(len(y)) % 3 == 0
    kind = {"contrast": "standardized", "random_state": 0}
    plain = LHForestClassifier(60, **kind).fit(X[train], y[train])
    model = LHForestClassifier(60, **kind, calibration="oob").fit(X[train], y[train])
    offset, exponent = model.calibration_
    assert not hasattr(plain, "calibration_")
    assert offset == 0.5 / 60
    assert_array_equal(model.predict(X), plain.predict(X))
    # The formula, from the plain scores.
    q = compute_scores(model.voting_.vote(model.forest_, X), 60)
    expected = (q + offset) ** exponent
    assert_allclose(
        model.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), rtol=1e-9
    )
    before, after = (log_loss(y[test], m.predict_proba(X[test])) for m in (plain, model))
    assert after < before + 0.01


def compute_scores(sums, n_estimators):
    """Return the scores q of the classes, as their formula says."""
    vote, distance = sums[0] / n_estimators, sums[1] / n_estimators
    if vote.shape[1] == 2:
        vote = np.column_stack([1 - vote[:, 1], vote[:, 1]])
        distance = np.column_stack([-distance[:, 1], distance[:, 1]])
    return vote + 1e-6 * (1 + distance / (1 + np.abs(distance))) / 2


def test_calibration_needs_memberships_and_out_of_bag_rows(three_classes):
    with pytest.raises(ValueError, match="calibration='oob' needs voting='membership'"):
        LHForestClassifier(3, calibration="oob", voting="margin").fit(*three_classes)
    with pytest.raises(ValueError, match="calibration='oob' needs out-of-bag rows"):
        LHForestClassifier(3, calibration="oob", max_samples=None).fit(*three_classes)


def test_a_saved_model_keeps_its_calibration_and_shrinkage(noisy_labels, tmp_path):
    X, y = noisy_labels
    model = LHForestClassifier(30, calibration="oob", random_state=0).fit(X, y)
    lhtree.save(model, tmp_path / "model.safetensors")
    loaded = lhtree.load(tmp_path / "model.safetensors")
    assert loaded.shrinkage_ == model.shrinkage_
    assert_array_equal(loaded.calibration_, model.calibration_)
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
