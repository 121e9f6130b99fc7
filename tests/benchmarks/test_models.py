"""The models that the benchmarks compare, by name."""

import numpy as np
import pytest

from benchmarks import models
from lhtree import LHForestClassifier, LHTClassifier


def test_settings_of_the_paper_reach_the_models():
    forest = models.make_model(models.PAPER, "mnist", 1, 7).get_params()
    assert (forest["alpha"], forest["beta"], forest["n_estimators"]) == (900, 0.8, 20)
    assert (forest["gamma"], forest["min_samples_split"], forest["standardize"]) == (6, 6, False)
    assert forest["max_samples"] is None
    assert (forest["preset"], forest["random_state"]) == ("paper", 7)
    assert models.make_model("RF (table 6)", "satimage").max_depth == 15
    assert models.make_model("RF (table 6)", "wine") is None
    assert models.make_model("RF", "satimage", 2).get_params()["n_jobs"] == 2
    assert models.read_paper_accuracy("LHT")["skin"] == (99.97, 0.01)


def test_a_name_may_hold_parameters():
    model = models.make_model("LHForest, max_features=1.0, criterion='purity'", "wine")
    assert isinstance(model, LHForestClassifier)
    assert (model.max_features, model.criterion, model.n_jobs) == (1.0, "purity", 1)
    assert models.make_model(models.BETAS[1], "wine").get_params()["beta"] == 0.25
    assert isinstance(models.make_model("LHT, max_depth=3", "wine"), LHTClassifier)


@pytest.mark.parametrize("name", ["LHForest, fast", "LHT, 1=2", "Oracle"])
def test_an_unknown_model_is_named(name):
    with pytest.raises(ValueError, match=f"No model is called '{name}'"):
        models.make_model(name, "wine")


def test_the_search_prefers_the_better_setting_and_grows_it():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    y = (X.sum(axis=1) > 0).astype(np.int64)
    settings = {"default": {"max_depth": 1, "max_features": 1}, "full": {"max_features": 1.0}}
    tuned = models.TunedForest(0, settings).fit(X, y)
    assert tuned.setting_ == "full"
    assert tuned.scores_["full"].mean() > tuned.scores_["default"].mean()
    best = LHForestClassifier(random_state=0, max_features=1.0).fit(X, y)
    np.testing.assert_array_equal(tuned.predict_proba(X), best.predict_proba(X))


@pytest.mark.parametrize(
    ("lead", "chosen"),
    [([0.03, -0.02, 0.01], "default"), ([0.03, 0.02, 0.01], "other"), ([0, 0, 0], "default")],
)
def test_the_defaults_stay_unless_another_setting_leads_clearly(lead, chosen):
    default = np.array([0.90, 0.92, 0.91])
    assert models.choose_setting({"default": default, "other": default + lead}) == chosen


def test_every_setting_of_the_search_can_be_grown():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 4)), np.arange(60) % 3
    assert set(models.score_settings(X, y, models.SETTINGS, 0)) == set(models.SETTINGS)
